"""The layout of stored bodies: superstep values in msgpack lists, user values inside as the codec's own bytes.

Two levels, so that a row can be listed, linked and repaired without decoding a single user value. A format number leads
every body. A channel entry is `[kind, payload]`:

    FULL      the value's bytes
    DELTA     what to fold into the value held at a distance (reserved: nothing writes it yet)
    POINTER   [outcome, write]: the value is that write of an outcome in this body
    DISTANCE  how many seqs back the row lies that holds the value

Layouts of records follow their `kind` (`lifecycle.RECORD_KINDS`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import ormsgpack

from stepwell.codec import Codec, is_scalar
from stepwell.errors import CorruptRecordError, StepwellError, UnserializableValueError
from stepwell.graph.policies import TimeoutPolicy
from stepwell.graph.types import MISSING, Send
from stepwell.plan.tables import Plan
from stepwell.superstep.formats import FORMAT as FORMAT, parts_of
from stepwell.superstep.items import decode_items
from stepwell.superstep.lifecycle import SUCCEEDED
from stepwell.superstep.outcome import Cancelled, Failed, Interrupted, Question, Returned, Route, Succeeded, Write
from stepwell.superstep.state import Planned, State, Task

FULL, DELTA, POINTER, DISTANCE = range(4)

_packb = ormsgpack.packb


class Encoded(NamedTuple):
    """A checkpoint body, and the live values that reading it back would give."""

    body: bytes
    values: Mapping[str, Any]


class Opened(NamedTuple):
    """A checkpoint body with its user values still in bytes."""

    outcomes: list[Any]
    channels: dict[str, list[Any]]
    next: list[Any]
    barriers: dict[str, list[str]]
    deferred: list[str]
    activations: dict[str, int]
    writers: list[str]
    abandoned: list[Any]


Place = tuple[int, int, Any, bytes]
"""Outcome, write, the value written and its bytes."""


class Source(NamedTuple):
    """An outcome as a checkpoint body keeps it: inline, or by the seq of the record that holds it."""

    task: Task
    outcome: Succeeded
    record_seq: int | None = None


def encode_checkpoint(
    codec: Codec,
    plan: Plan,
    state: State,
    seq: int,
    outcomes: Iterable[tuple[Task, Succeeded, int | None]],
    holds: Mapping[str, int],
    abandoned: Sequence[Task] = (),
) -> Encoded:
    """Return the body of `state` at `seq`. `holds` names the row of each unchanged channel; all others are written.

    UnserializableValueError names the channel, the path in it and the node that wrote it.
    """
    stored, places = _outcomes(codec, plan, outcomes)
    channels: dict[str, Any] = {}
    reread: dict[str, Any] = {}
    for key, value in state.values.items():
        if key in holds:
            channels[key] = (DISTANCE, seq - holds[key])
            continue
        place = places.get(key)
        if place is not None and value is place[2]:
            channels[key] = (POINTER, place[:2])
            data = place[3]
        elif key in plan.channels and plan.channels[key].tracked:
            data = _dumps(codec, value, key, state.writers)
            channels[key] = (FULL, data)
        else:
            continue
        if not is_scalar(value):
            reread[key] = codec.loads(data, key)
    parts = (
        FORMAT,
        stored,
        channels,
        [_planned(codec, planned) for planned in state.next],
        {join: sorted(arrived) for join, arrived in state.barriers.items()} if state.barriers else {},
        sorted(state.deferred),
        state.activations,
        state.writers,
        [(task.node, task.index, task.activation) for task in abandoned],
    )
    return Encoded(_packb(parts), {**state.values, **reread} if reread else state.values)


def _planned(codec: Codec, planned: Planned) -> tuple[Any, ...]:
    node, at, arg, timeout = planned
    data = None if arg is MISSING else codec.dumps(arg, _arg_path(planned))
    return (node, at, data, None if timeout is None else _limits(timeout))


def _limits(timeout: TimeoutPolicy) -> tuple[Any, ...]:
    return (timeout.run_timeout, timeout.idle_timeout, timeout.refresh_on)


def _timeout(limits: Sequence[Any] | None) -> TimeoutPolicy | None:
    return None if limits is None else TimeoutPolicy(*limits)


def _outcomes(
    codec: Codec, plan: Plan, outcomes: Iterable[tuple[Task, Succeeded, int | None]]
) -> tuple[list[Any], dict[str, Place | None]]:
    """Return the outcomes to store, and where the sole write of each single-valued channel stands."""
    stored: list[Any] = []
    places: dict[str, Place | None] = {}
    channels = plan.channels
    for i, (task, outcome, record_seq) in enumerate(outcomes):
        if record_seq is not None:
            stored.append((task.node, task.index, task.activation, record_seq))
            continue
        writes = encode_writes(codec, plan, task.node, outcome.writes)
        stored.append((task.node, task.index, task.activation, writes, encode_routes(codec, task.node, outcome.routes)))
        for j, (key, data) in enumerate(writes):
            if data and channels[key].single:
                places[key] = (i, j, outcome.writes[j][1], data) if key not in places else None
    return stored, places


def _arg_path(planned: Planned) -> str:
    return f"input of {planned.node}" if planned.at is None else f"Send[{planned.at}] to {planned.node}"


def _dumps(codec: Codec, value: Any, key: str, writers: Sequence[str]) -> bytes:
    try:
        return codec.dumps(value, key)
    except UnserializableValueError as error:
        raise blame(error, writers) from None


def blame(error: UnserializableValueError, nodes: Sequence[str]) -> UnserializableValueError:
    """Return the error naming the nodes that wrote the value."""
    known = error.fields()
    if not nodes or "node" in known:
        return error
    node = ", ".join(nodes)
    return UnserializableValueError(
        f"Node {node!r} wrote what cannot be stored: {error.args[0]}", **{**known, "node": node}
    )


def encode_writes(codec: Codec, plan: Plan, node: str, writes: Sequence[Write]) -> list[Any]:
    """Return writes as [channel, bytes] pairs; untracked channels are left out by storing nothing for them."""
    channels = plan.channels
    try:
        return [(key, codec.dumps(value, key) if channels[key].tracked else b"") for key, value in writes]
    except UnserializableValueError as error:
        raise blame(error, (node,)) from None


def encode_routes(codec: Codec, node: str, routes: Sequence[Route]) -> list[Any]:
    """Return the routes of a node as names and [node, bytes, limits] sends."""
    try:
        return [route if type(route) is str else _route(codec, route) for route in routes]
    except UnserializableValueError as error:
        raise blame(error, (node,)) from None


def _route(codec: Codec, route: Route) -> Any:
    if isinstance(route, str):
        return route
    limits = None if route.timeout is None else _limits(route.timeout)
    return (route.node, codec.dumps(route.arg, f"Send to {route.node}"), limits)


@contextmanager
def reading(record: str) -> Iterator[None]:
    """Turn what a body that does not fit its layout raises into a CorruptRecordError naming the record."""
    try:
        yield
    except StepwellError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise CorruptRecordError(record=record, reason=f"its body does not fit its layout ({error})") from error


def open_checkpoint(body: bytes, record: str) -> Opened:
    """Return the body's parts without decoding user values."""
    parts = _unpack(body, record, len(_CHECKPOINT_PARTS))
    _expect(tuple(map(type, parts)) == _CHECKPOINT_PARTS, record)
    for entry in parts[1].values():
        if type(entry) is not list or len(entry) != 2:
            _expect(False, record)
    return Opened._make(parts)


_CHECKPOINT_PARTS = (list, dict, list, dict, list, dict, list, list)


def _expect(fits: bool, record: str) -> None:
    if not fits:
        raise CorruptRecordError(record=record, reason="its body does not fit its layout")


def _unpack(body: bytes, record: str, *lengths: int) -> list[Any]:
    """Return the parts of a body, its format checked and left out."""
    parts = parts_of(body, record)
    _expect(len(parts) in lengths, record)
    return parts


def needs(opened: Opened, seq: int) -> set[int]:
    """Return the seqs of the rows that hold this checkpoint's unchanged channels."""
    return {seq - payload for kind, payload in opened.channels.values() if kind == DISTANCE}


def holds_of(opened: Opened, seq: int) -> dict[str, int]:
    """Return, per stored channel, the seq of the row that holds its value."""
    return {key: seq - payload if kind == DISTANCE else seq for key, (kind, payload) in opened.channels.items()}


def value_bytes(opened: Opened, key: str, record: str) -> bytes:
    """Return the bytes of a channel that this body holds itself."""
    kind, payload = opened.channels[key]
    if kind == FULL:
        return bytes(payload)
    if kind == POINTER:
        return bytes(opened.outcomes[payload[0]][3][payload[1]][1])
    raise CorruptRecordError(record=record, reason=f"channel {key!r} has entry kind {kind}, which holds no value")


def inline_outcomes(opened: Opened) -> list[tuple[str, int | None, bytes]]:
    """Return (node, index, body of a `succeeded` record) for each outcome this body holds itself."""
    return [(o[0], o[1], _packb([FORMAT, o[3], o[4]])) for o in opened.outcomes if len(o) == 5]


def decode_next(codec: Codec, planned: Sequence[Any]) -> tuple[Planned, ...]:
    return tuple(
        Planned(node, index, MISSING if arg is None else codec.loads(arg, f"Send to {node}"), _timeout(limits))
        for node, index, arg, limits in planned
    )


def decode_routes(codec: Codec, routes: Sequence[Any]) -> tuple[Route, ...]:
    return tuple(
        route
        if isinstance(route, str)
        else Send(route[0], codec.loads(route[1], f"Send to {route[0]}"), timeout=_timeout(route[2]))
        for route in routes
    )


def decode_writes(codec: Codec, writes: Sequence[Any]) -> tuple[Write, ...]:
    return tuple((key, codec.loads(data, key)) for key, data in writes if data)


# -- records ----------------------------------------------------------------------------------------------------------


def encode_succeeded(codec: Codec, plan: Plan, task: Task, outcome: Succeeded) -> bytes:
    return _packb([FORMAT, *_encode_return(codec, plan, task, outcome)])


def stored_copy(codec: Codec, plan: Plan, task: Task, outcome: Succeeded) -> Succeeded:
    """Return the outcome as it would be read back; untracked channels keep what was written."""
    stored = decode_succeeded(codec, encode_succeeded(codec, plan, task, outcome), f"outcome of {task.node}")
    if len(stored.writes) == len(outcome.writes):
        return stored
    read = iter(stored.writes)
    writes = [next(read) if plan.channels[key].tracked else (key, value) for key, value in outcome.writes]
    return Succeeded(tuple(writes), stored.routes, stored.items)


def without_items(kind: str, body: bytes) -> bytes:
    """Return the body of an outcome's record without what it wrote to the item store."""
    parts = ormsgpack.unpackb(body, option=ormsgpack.OPT_NON_STR_KEYS)
    if kind == SUCCEEDED:
        parts = parts[:3]
    elif parts[2] is not None:
        parts[2] = parts[2][:2]
    return _packb(parts)


def encode_failed(codec: Codec, plan: Plan, task: Task, outcome: Failed | Cancelled) -> bytes:
    return _packb([FORMAT, outcome.text, _encode_kept(codec, plan, task, outcome.kept)])


def encode_interrupted(codec: Codec, plan: Plan, task: Task, outcome: Interrupted) -> bytes:
    questions = [[q.interrupt_id, q.call_id, _question_bytes(codec, task, q)] for q in outcome.questions]
    return _packb([FORMAT, questions, _encode_kept(codec, plan, task, outcome.kept)])


def _question_bytes(codec: Codec, task: Task, question: Question) -> bytes:
    try:
        return codec.dumps(question.value, "interrupt")
    except UnserializableValueError as error:
        raise blame(error, (task.node,)) from None


def encode_answer(codec: Codec, interrupt_id: str, call_id: str, value: Any) -> bytes:
    return _packb([FORMAT, interrupt_id, call_id, codec.dumps(value, "answer")])


def encode_attempt(text: str, attempts: int, first_at: int, next_at: int) -> bytes:
    return _packb([FORMAT, text, attempts, first_at, next_at])


def encode_discarded() -> bytes:
    return _packb([FORMAT])


def _encode_kept(codec: Codec, plan: Plan, task: Task, kept: Returned | None) -> Any:
    return None if kept is None else _encode_return(codec, plan, task, kept)


def _encode_return(codec: Codec, plan: Plan, task: Task, made: Returned | Succeeded) -> list[Any]:
    """Return writes, routes and, where there are any, item writes."""
    parts = [encode_writes(codec, plan, task.node, made.writes), encode_routes(codec, task.node, made.routes)]
    return [*parts, [tuple(write) for write in made.items]] if made.items else parts


def _decode_return(codec: Codec, parts: Sequence[Any]) -> Returned:
    items = decode_items(parts[2]) if len(parts) > 2 else ()
    return Returned(decode_writes(codec, parts[0]), decode_routes(codec, parts[1]), items)


def _decode_kept(codec: Codec, kept: Any) -> Returned | None:
    return None if kept is None else _decode_return(codec, kept)


def decode_succeeded(codec: Codec, body: bytes, record: str) -> Succeeded:
    parts = _unpack(body, record, 2, 3)
    with reading(record):
        return Succeeded(*_decode_return(codec, parts))


def decode_failed(codec: Codec, body: bytes, record: str) -> Failed:
    text, kept = _unpack(body, record, 2)
    _expect(type(text) is str, record)
    with reading(record):
        return Failed(text, None, _decode_kept(codec, kept))


def decode_cancelled(codec: Codec, body: bytes, record: str) -> Cancelled:
    text, _, kept = decode_failed(codec, body, record)
    return Cancelled(text, kept)


def decode_interrupted(codec: Codec, body: bytes, record: str) -> Interrupted:
    questions, kept = _unpack(body, record, 2)
    with reading(record):
        asked = tuple(Question(*_ids(iid, call), codec.loads(value, "interrupt")) for iid, call, value in questions)
        return Interrupted(asked, _decode_kept(codec, kept))


def decode_answer(codec: Codec, body: bytes, record: str) -> tuple[str, str, Any]:
    interrupt_id, call_id, value = _unpack(body, record, 3)
    with reading(record):
        return (*_ids(interrupt_id, call_id), codec.loads(value, "answer"))


def decode_attempt(body: bytes, record: str) -> tuple[str, int, int, int]:
    text, attempts, first_at, next_at = _unpack(body, record, 4)
    _expect(type(text) is str and all(type(number) is int for number in (attempts, first_at, next_at)), record)
    return text, attempts, first_at, next_at


def _ids(interrupt_id: Any, call_id: Any) -> tuple[str, str]:
    if type(interrupt_id) is not str or type(call_id) is not str:
        raise TypeError("an interrupt id and a call id are text")
    return interrupt_id, call_id
