"""Waits of a task for what comes from outside: which are open, which are over, and how they are recorded.

A wait is known by its call id, like a question. What is known of it stands beside the task's answers: `Awaited` from
when it was first asked, with its deadline, and `Arrived` once it is over. The rule kept here: what a wait gets depends
on when messages were sent and in which order they came, never on when somebody came to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import ormsgpack

from stepwell.codec import Codec
from stepwell.errors import CorruptRecordError
from stepwell.graph.approval import ApprovalRequest
from stepwell.plan.tables import Plan
from stepwell.superstep import body as layout
from stepwell.superstep.blobs import kinds_of
from stepwell.superstep.effects.approval import asked_before
from stepwell.superstep.formats import FORMAT, parts_of
from stepwell.superstep.outcome import Awaited, Interrupted
from stepwell.superstep.state import Base, Task, merge_order

TIMER = "timer"
SIGNAL = "signal"
AWAKEABLE = "awakeable"

CAME = "came"
LATE = "late"


class Arrived(NamedTuple):
    """What came of a wait for a message."""

    status: str
    """came: the message did; late: the deadline passed first."""
    key: str
    """Of what was awaited."""
    value: Any = None
    """What the message says."""


class Letter(NamedTuple):
    """A message that waits in the thread's inbox, still sealed."""

    message_id: str
    kind: str
    key: str
    sent_at: int


class Over(NamedTuple):
    """A wait that is over: by a message, or because its time has come."""

    place: int
    """The task's position in the base."""
    awaited: Awaited
    letter: Letter | None


def open_waits(base: Base) -> Iterator[tuple[Task, Awaited]]:
    """Return what tasks of a base wait for that has not come, in listing order."""
    for task, outcome in zip(base.tasks, base.outcomes, strict=True):
        if isinstance(outcome, Interrupted) and outcome.awaited:
            known = base.answers.get(task.id, {})
            for awaited in outcome.awaited:
                if not isinstance(known.get(awaited.call_id), Arrived):
                    yield task, awaited


def over_now(base: Base, inbox: Sequence[Letter], now: int) -> list[Over]:
    """Return the waits that are over: each message goes to one of them, the first in merge order that waits for it."""
    left = list(inbox)
    found: list[Over] = []
    positions = {task.id: place for place, task in enumerate(base.tasks)}
    ranks = {place: rank for rank, place in enumerate(merge_order(base.tasks))}
    waits = sorted(((positions[task.id], awaited) for task, awaited in open_waits(base)), key=lambda w: ranks[w[0]])
    for index, awaited in waits:
        letter = next((each for each in left if _is_for(each, awaited)), None)
        if letter is not None:
            left.remove(letter)
            found.append(Over(index, awaited, letter))
        elif awaited.until is not None and awaited.until <= now:
            found.append(Over(index, awaited, None))
    return found


def _is_for(letter: Letter, awaited: Awaited) -> bool:
    in_time = awaited.until is None or letter.sent_at <= awaited.until
    return (letter.kind, letter.key) == (awaited.kind, awaited.key) and in_time


def next_deadline(waits: Iterable[Awaited]) -> int | None:
    """Return when the first of these waits is over if nothing comes; None where time alone ends none."""
    return min((each.until for each in waits if each.until is not None), default=None)


def register(base: Base, task_id: str, outcome: Interrupted) -> None:
    """Note what a task waits for or wants approved, so that it keeps its deadline when the node asks again."""
    known = base.answers.get(task_id, {})
    for question in outcome.questions:
        place = asked_before(question.call_id)
        if isinstance(question.value, ApprovalRequest) and place not in known:
            base.answer(task_id, place, question.value)
    for awaited in outcome.awaited:
        if awaited.call_id not in known:
            base.answer(task_id, awaited.call_id, awaited)


def forget_late(base: Base, task_id: str) -> None:
    """Forget the waits of a task that had come to nothing: its attempt failed, and the next one waits anew."""
    known = base.answers.get(task_id)
    if known and any(isinstance(value, Arrived) and value.status == LATE for value in known.values()):
        kept = {key: value for key, value in known.items() if not (isinstance(value, Arrived) and value.status == LATE)}
        base.answers = {**base.answers, task_id: kept}


# -- records ----------------------------------------------------------------------------------------------------------


def encode_wait(codec: Codec, plan: Plan, task: Task, outcome: Interrupted) -> bytes:
    """Return the body of a `wait` record: what is awaited, before what an `interrupted` one says."""
    return layout.encode_interrupted(codec, plan, task, outcome, [list(awaited) for awaited in outcome.awaited])


def decode_wait(codec: Codec, body: bytes, record: str) -> Interrupted:
    """Return the outcome that the record says. CorruptRecordError where its body does not fit its layout."""
    waits, *interrupted = _pause_parts(body, record)
    return layout.interrupted_of(codec, interrupted, record)._replace(awaited=_awaited(waits, record))


def awaited_in(body: bytes, record: str) -> tuple[Awaited, ...]:
    """Return what a `wait` record says is awaited, without decoding a user's value."""
    return _awaited(_pause_parts(body, record)[0], record)


def _pause_parts(body: bytes, record: str) -> list[Any]:
    parts = parts_of(body, record)
    if len(parts) != 3 or [type(part) for part in parts[:2]] != [list, list]:
        raise _misfit(record)
    return parts


def _awaited(waits: Sequence[Any], record: str) -> tuple[Awaited, ...]:
    found = []
    for parts in waits:
        if type(parts) is not list or [type(part) for part in parts[:3]] != [str, str, str] or len(parts) != 4:
            raise _misfit(record)
        if parts[3] is not None and type(parts[3]) is not int:
            raise _misfit(record)
        found.append(Awaited(*parts))
    return tuple(found)


def encode_arrived(awaited: Awaited, message_id: str, status: str, value: bytes) -> bytes:
    """Return the body of an `arrived` record. `value` is what the message says, as it was encoded for the inbox."""
    return ormsgpack.packb([FORMAT, awaited.call_id, awaited.key, message_id, status, value])


def decode_arrived(codec: Codec, body: bytes, record: str) -> tuple[str, str, Arrived]:
    """Return the call id, the id of the message ("" where none came) and what came of the wait."""
    call_id, key, message_id, status, value = _parts(body, record, str, str, str, str, bytes)
    return call_id, message_id, Arrived(status, key, codec.loads(value, "signal") if value else None)


def _parts(body: bytes, record: str, *kinds: type) -> list[Any]:
    parts = parts_of(body, record)
    if kinds_of(parts) != kinds:
        raise _misfit(record)
    return parts


def _misfit(record: str) -> CorruptRecordError:
    return CorruptRecordError(record=record, reason="its body does not fit its layout")
