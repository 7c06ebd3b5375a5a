"""What an answer to the question of an effect decides.

The rules kept: nothing is approved by default, so what is no decision is an error, and so is one that comes after the
deadline; a decision is for one call with the arguments that were shown, and for those it puts in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from stepwell.errors import ApprovalExpiredError, InvalidDecisionError
from stepwell.graph.approval import ApprovalRequest, Approve, Decision, Reject
from stepwell.ids import structural_hash
from stepwell.superstep.answer import Asked, open_now
from stepwell.superstep.state import Base

APPROVED: Final = "approved"
REJECTED: Final = "rejected"
EXPIRED: Final = "expired"

_SPELLED = {True: {"approved", "by", "note", "args"}, False: {"approved", "by", "reason"}}
"""What a decision that is given as a mapping may hold."""


def moment(microseconds: int) -> datetime:
    """Return wall time in microseconds as a time in UTC, exactly."""
    return _EPOCH + timedelta(microseconds=microseconds)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def question_id(call_id: str, fingerprint: str, renewed: str) -> str:
    """Return the call id of an effect's question. A call with other arguments is another question, and so is one for
    which a new effect stands in, under the key `renewed`: what was decided is not decided for them."""
    return f"{call_id}/approval/{structural_hash('approval', fingerprint, renewed)[:16]}"


def asked_before(question: str) -> str:
    """Return the id beside a task's answers under which the question stands as it was first asked."""
    return f"{question}/asked"


def is_decision(value: Any) -> bool:
    """Tell whether an answer decides something, whatever was asked."""
    return isinstance(value, Approve | Reject) or (isinstance(value, Mapping) and {"approved", "by"} <= value.keys())


def decide(thread_id: str, interrupt_id: str, request: ApprovalRequest, answer: Any, now: int) -> Decision:
    """Return the decision that an answer is. InvalidDecisionError where it is none, ApprovalExpiredError where it comes
    too late."""
    facts = {"thread_id": thread_id, "interrupt_id": interrupt_id, "name": request.effect}
    given = _spelled(answer, facts)
    if not isinstance(given.by, str) or not given.by.strip():
        raise InvalidDecisionError(reason=f"`by` must say who decides, and is {given.by!r}", **facts)
    note = given.note if isinstance(given, Approve) else given.reason
    if note is not None and not isinstance(note, str):
        raise InvalidDecisionError(reason=f"what is said to it must be a text, not {note!r}", **facts)
    args = _edits(request, given.args, facts) if isinstance(given, Approve) else {}
    if is_expired(request, now):
        raise ApprovalExpiredError(expires_at=request.expires_at, key=request.key, **facts)
    status: Any = APPROVED if isinstance(given, Approve) else REJECTED
    return Decision(status=status, by=given.by, at=moment(now), note=note, args=args)


def _spelled(answer: Any, facts: dict[str, str]) -> Approve | Reject:
    """Return what somebody decided, given as one of the two, or as a mapping."""
    if isinstance(answer, Approve | Reject):
        return answer
    if not isinstance(answer, Mapping) or type(answer.get("approved")) is not bool or "by" not in answer:
        raise InvalidDecisionError(reason=f"{answer!r} is no decision", **facts)
    unknown = sorted(map(str, answer.keys() - _SPELLED[answer["approved"]]))
    if unknown:
        raise InvalidDecisionError(reason=f"it holds {', '.join(unknown)}, which means nothing there", **facts)
    if answer["approved"]:
        return Approve(answer["by"], answer.get("note"), answer.get("args") or {})
    return Reject(answer["by"], answer.get("reason"))


def _edits(request: ApprovalRequest, args: Any, facts: dict[str, str]) -> dict[str, Any]:
    if not isinstance(args, Mapping):
        raise InvalidDecisionError(reason=f"`args` must map names of arguments to values, not {args!r}", **facts)
    unknown = sorted(str(name) for name in args if name not in request.editable)
    if unknown:
        may = ", ".join(request.editable) or "nothing"
        raise InvalidDecisionError(reason=f"it changes {', '.join(unknown)}; it may change {may}", **facts)
    return dict(args)


def is_expired(request: ApprovalRequest, now: int) -> bool:
    """Tell whether it is too late to decide."""
    return request.expires_at is not None and request.expires_at <= moment(now)


def expired_now(base: Base, now: int) -> Iterator[tuple[Asked, Decision]]:
    """Return the open questions of a base for which it is too late by now, each with what is recorded of that."""
    for task, question in open_now(base):
        request = question.value
        if isinstance(request, ApprovalRequest) and is_expired(request, now):
            assert request.expires_at is not None
            yield (task, question), Decision(status=EXPIRED, by="", at=request.expires_at)
