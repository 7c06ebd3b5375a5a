"""Decisions from outside, about effects that need approval: checked before anything is recorded, and made once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stepwell.codec import Codec
from stepwell.errors import AlreadyDecidedError, ApprovalExpiredError
from stepwell.graph.approval import ApprovalRequest, Decision
from stepwell.runtime.blobs import reading_records
from stepwell.runtime.loading import row_name
from stepwell.store import Reader
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.answer import Answered, bare, id_map
from stepwell.superstep.effects.approval import EXPIRED, decide, is_decision


def decides(resume: Any) -> bool:
    """Tell whether what a thread is resumed with decides anything."""
    given = id_map(resume)
    if given is not None:
        return any(is_decision(bare(value)) for value in given.values())
    return is_decision(bare(resume))


def checked_decisions(thread_id: str, answers: Sequence[Answered], now: int) -> list[Answered]:
    """Return the answers, with the decision in place of each that answers the question of an effect."""
    return [
        answer._replace(value=decide(thread_id, answer.question.interrupt_id, answer.question.value, answer.value, now))
        if isinstance(answer.question.value, ApprovalRequest)
        else answer
        for answer in answers
    ]


def refuse_again(codec: Codec, reader: Reader, thread_id: str, resume: Any) -> None:
    """Raise what says who decided first, where this is a second decision."""
    given, made = id_map(resume), list(_decisions(codec, reader, thread_id))
    if given is None:
        found = made[-1:] if decides(resume) else []
    else:
        found = [each for each in made if each[0] in given]
    for interrupt_id, decision in found[:1]:
        if decision.status == EXPIRED:
            told = f"It is too late to decide about question {interrupt_id} of thread {thread_id}: it {decision}."
            raise ApprovalExpiredError(told, thread_id=thread_id, interrupt_id=interrupt_id, expires_at=decision.at)
        facts = {"interrupt_id": interrupt_id, "interrupt_ids": [interrupt_id], "open_ids": []}
        raise AlreadyDecidedError(thread_id=thread_id, decision=decision, **facts)


def _decisions(codec: Codec, reader: Reader, thread_id: str) -> Iterator[tuple[str, Decision]]:
    rows = reader.records_of_kind(thread_id, lifecycle.DECISION)
    codec = reading_records(reader, codec, rows)
    for row in rows:
        interrupt_id, _, decision = layout.decode_answer(codec, row.body, row_name(row))
        yield interrupt_id, decision
