"""A decision that is put on record without the graph: by an operator, who does not run what follows from it.

It takes the thread for its own transaction, as resolving a doubt does, and lands only if the thread is still as it was
read. Whoever continues the thread then goes on with the decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stepwell import points
from stepwell.clock import Clock
from stepwell.codec import Codec
from stepwell.errors import InterruptAnsweredError, UnknownInterruptError, UnknownThreadError
from stepwell.graph.approval import ApprovalRequest, Decision
from stepwell.runtime.again import Moved, until_written
from stepwell.runtime.blobs import Shelf, reading_records
from stepwell.runtime.deciding import checked_decisions, refuse_again
from stepwell.runtime.effects.resolving import claim_beside
from stepwell.runtime.loading import check_input_kept, decode_pause, row_name
from stepwell.runtime.reading.bare import bare_base
from stepwell.store import Claim, Reader, RecordRow, Sealer, Store, ThreadRow
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.answer import Asked, match_answers, open_now
from stepwell.superstep.state import Base


def record_decision(
    store: Store, codec: Codec, clock: Clock, thread_id: str, which: str | None, answer: Any
) -> tuple[int, Decision]:
    """Write a decision about the open approval with this interrupt id or key, or the only one that is open; return the
    seq of its record, and what it says. Durable on return."""

    def attempt() -> tuple[int, Decision]:
        with store.reading() as reader:
            thread = reader.thread(thread_id)
            if thread is None:
                raise UnknownThreadError(thread_id=thread_id)
            claim, decision = _compose(store.sealer, reader, codec, thread, which, answer, clock.now())
        points.reach(points.ADMISSION)
        if store.admit(claim) is None:
            raise Moved
        points.reach(points.APPROVAL_DECIDED)
        return claim.rows.head_seq, decision

    return until_written(thread_id, attempt)


def open_approvals(base: Base) -> list[Asked]:
    """Return the questions of effects that nobody has decided."""
    return [asked for asked in open_now(base) if isinstance(asked[1].value, ApprovalRequest)]


def _compose(
    sealer: Sealer, reader: Reader, codec: Codec, thread: ThreadRow, which: str | None, answer: Any, now: int
) -> tuple[Claim, Decision]:
    thread_id = thread.thread_id
    check_input_kept(reader.run(thread.run_id) if thread.run_id else None)
    row = reader.newest(thread_id, "")
    opened = None if row is None else layout.open_checkpoint(row.body, row_name(row))
    base = None if row is None or opened is None else bare_base(reader, codec, row, opened)
    asked = [] if base is None else open_approvals(base)
    open_ids = [question.interrupt_id for _, question in asked]
    resume = answer if which is None else {_interrupt_id(reader, codec, thread_id, which, open_ids): answer}
    try:
        matched = match_answers(thread_id, asked, resume, {}, ())
    except (InterruptAnsweredError, UnknownInterruptError):
        refuse_again(codec, reader, thread_id, resume)
        raise
    ((task, question, decision),) = checked_decisions(thread_id, matched, now)
    assert base is not None
    shelf = Shelf(sealer)
    record = sealer.record(
        RecordRow(
            thread_id,
            "",
            base.lineage,
            thread.head_seq + 1,
            base.seq,
            base.digest,
            base.records,
            lifecycle.DECISION,
            task.id,
            "",
            now,
            shelf.apart(thread_id, layout.encode_answer(codec, question.interrupt_id, question.call_id, decision)),
            b"",
        )
    )
    return claim_beside(thread, record, (), now, shelf.take()), decision


def _interrupt_id(reader: Reader, codec: Codec, thread_id: str, which: str, open_ids: list[str]) -> str:
    """Return the id of the newest question that is named by its id, or by the key of its effect."""
    newest_first = list(_asked_ever(reader, codec, thread_id))[::-1]
    found = next((interrupt_id for interrupt_id, key in newest_first if which in (interrupt_id, key)), None)
    if found is None:
        raise UnknownInterruptError(
            f"Thread {thread_id} has asked for no approval with the id or key {which}. Open: {open_ids}.",
            thread_id=thread_id,
            interrupt_ids=[which],
            open_ids=open_ids,
        )
    return found


def _asked_ever(reader: Reader, codec: Codec, thread_id: str) -> Iterator[tuple[str, str]]:
    for kind in lifecycle.PAUSES:
        rows = reader.records_of_kind(thread_id, kind)
        reading = reading_records(reader, codec, rows)
        for row in rows:
            for question in decode_pause(reading, row.kind, row.body, row_name(row)).questions:
                if isinstance(question.value, ApprovalRequest):
                    yield question.interrupt_id, question.value.key
