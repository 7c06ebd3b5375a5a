"""Entries of what came to a node from outside: a decision about an effect before it happens, a signal, a timeout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stepwell.codec import Codec
from stepwell.graph.approval import ApprovalRequest, Decision
from stepwell.runtime.loading import row_name
from stepwell.runtime.reading.journal_entry import JournalEntry
from stepwell.store import RecordRow
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.waiting import decode_arrived, decode_wait

if TYPE_CHECKING:
    from stepwell.runtime.reading.journal_page import Page

_NO_CALL: dict[str, Any] = {
    "versions": {},
    "retry_count": 0,
    "attempts": 0,
    "error_state": None,
    "fingerprint": "",
}


def approval_entry(codec: Codec, record: RecordRow, page: Page) -> JournalEntry:
    """Return what somebody decided about a call, or that nobody did in time."""
    _, call_id, decision = layout.decode_answer(codec, record.body, row_name(record))
    request = _request(codec, page.asked.get(record.seq, ()), call_id)
    known = isinstance(decision, Decision)
    status = decision.status if known else "approved"
    return JournalEntry(
        kind="approval",
        name=request.effect if request is not None else "",
        step_id=request.step_id if request is not None else call_id,
        status=status,
        planned_action=request.planned_action if request is not None else "",
        inputs=request.inputs if request is not None else None,
        key=request.key if request is not None else None,
        started_at=request.asked_at if request is not None else None,
        finished_at=decision.at if known else None,
        approval_status=status,
        approval=decision,
        decided_by=(decision.by or None) if known else None,
        reason=decision.note if known else None,
        receipt=None,
        **_NO_CALL,
        **page.placed(record),
    )


def _request(codec: Codec, asked: Sequence[RecordRow], call_id: str) -> ApprovalRequest | None:
    """Return what was asked."""
    for record in reversed(asked):
        decode = decode_wait if record.kind == lifecycle.WAIT else layout.decode_interrupted
        for question in decode(codec, record.body, row_name(record)).questions:
            if question.call_id == call_id and isinstance(question.value, ApprovalRequest):
                return question.value
    return None


def wait_entry(codec: Codec, record: RecordRow, page: Page) -> JournalEntry:
    """Return what came of a wait."""
    call_id, _, arrived = decode_arrived(codec, record.body, row_name(record))
    placed = page.placed(record)
    return JournalEntry(
        kind="wait",
        name=arrived.key,
        step_id=call_id,
        status=arrived.status,
        planned_action=f"wait for {arrived.key}",
        inputs=None,
        key=None,
        started_at=None,
        finished_at=placed["recorded_at"],
        approval_status=None,
        receipt=arrived.value,
        **_NO_CALL,
        **placed,
    )
