"""A checkpoint's body: what its superstep came to, what each channel holds, what is planned.

Two levels, so that a row can be listed, linked and repaired without decoding a single user value: superstep values in
msgpack lists, user values inside as the codec's own bytes. Outcomes stand in the order in which they were folded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from stepwell.codec import Codec, is_scalar
from stepwell.errors import UnserializableValueError
from stepwell.plan.tables import Plan
from stepwell.superstep.blobs import pack as pack_references
from stepwell.superstep.body.channels import DISTANCE, FULL, POINTER, Opened
from stepwell.superstep.body.deltas import Chain, Ground, grow
from stepwell.superstep.body.frame import FORMAT, expect, pack, unpack
from stepwell.superstep.body.values import blame, encode_planned, encode_routes, encode_writes
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.state import State, Task, new

_NONE: Mapping[str, Any] = MappingProxyType({})


class Encoded(NamedTuple):
    """A checkpoint body, and the live values that reading it back would give."""

    body: bytes
    values: Mapping[str, Any]
    chains: Mapping[str, Chain] = _NONE
    """What deltas may follow, of the channels that were written."""


Place = tuple[int, int | None, Any, bytes | None]
"""Outcome, write, the value written and its bytes; no write and no bytes where a record holds it."""


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
    outcomes: Sequence[tuple[Task, Succeeded, int | None]],
    holds: Mapping[str, int],
    abandoned: Sequence[Task] = (),
    ground: Ground | None = None,
    counted: int = 0,
) -> Encoded:
    """Return the body of `state` at `seq`. `outcomes` in merge order. `holds` names the row of each unchanged channel;
    all others are written, as deltas where they stand on a `ground` for them. `counted`: the records before it.

    UnserializableValueError names the channel, the path in it and the node that wrote it.
    """
    stored, places = _outcomes(codec, plan, outcomes)
    grown = grow(codec, plan, state, seq, stored, outcomes, holds, ground) if ground is not None else _NONE
    channels: dict[str, Any] = {}
    held: dict[int, list[str]] = {}
    reread: dict[str, Any] = {}
    for key, value in state.values.items():
        if key in holds:
            held.setdefault(seq - holds[key], []).append(key)
            continue
        place = places.get(key)
        if place is not None and value is place[2]:
            channels[key] = (POINTER, place[:2])
            data = place[3] if place[3] is not None else _dumps(codec, value, key, state.writers)
        elif key in grown:
            channels[key], reread[key] = grown[key][:2]
            continue
        elif key in plan.channels and plan.channels[key].tracked:
            data = _dumps(codec, value, key, state.writers)
            channels[key] = (FULL, data)
        else:
            continue
        if not is_scalar(value):
            reread[key] = codec.loads(data, key)
    parts: tuple[Any, ...] = (
        FORMAT,
        stored,
        channels,
        [*held.items()],
        [encode_planned(codec, planned) for planned in state.next],
        {join: sorted(arrived) for join, arrived in state.barriers.items()} if state.barriers else {},
        sorted(state.deferred) if state.deferred else (),
        state.activations,
        state.writers,
        [(task.node, task.index, task.activation) for task in abandoned] if abandoned else (),
    )
    if counted:
        parts = (*parts, counted)
    values = {**state.values, **reread} if reread else state.values
    if not grown:
        return new(Encoded, (pack(parts), values, _NONE))
    refers = any(each.refers for each in grown.values())
    body = pack_references(parts) if refers else pack(parts)
    return Encoded(body, values, {key: each.chain for key, each in grown.items()})


def _outcomes(
    codec: Codec, plan: Plan, outcomes: Sequence[tuple[Task, Succeeded, int | None]]
) -> tuple[list[Any], dict[str, Place | None]]:
    """Return the outcomes to store, and where the sole write of each single-valued channel stands."""
    stored: list[Any] = []
    places: dict[str, Place | None] = {}
    channels = plan.channels
    for i, (task, outcome, record_seq) in enumerate(outcomes):
        if record_seq is not None:
            stored.append((task.node, task.index, task.activation, record_seq))
            if not plan.changed.channels:  # else the record may know the channel by another name
                for key, value in outcome.writes:
                    if channels[key].single and channels[key].tracked:
                        places[key] = (i, None, value, None) if key not in places else None
            continue
        writes = encode_writes(codec, plan, task.node, outcome.writes)
        stored.append((task.node, task.index, task.activation, writes, encode_routes(codec, task.node, outcome.routes)))
        for j, (key, data) in enumerate(writes):
            if data and channels[key].single:
                places[key] = (i, j, outcome.writes[j][1], data) if key not in places else None
    return stored, places


def _dumps(codec: Codec, value: Any, key: str, writers: Sequence[str]) -> bytes:
    try:
        return codec.dumps(value, key)
    except UnserializableValueError as error:
        raise blame(error, writers) from None


_PARTS = (list, dict, list, list, dict, list, dict, list, list)
_COUNTED = (*_PARTS, int)


def open_checkpoint(body: bytes, record: str) -> Opened:
    """Return the body's parts without decoding user values."""
    outcomes, channels, held, *rest = parts = unpack(body, record, len(_PARTS), len(_COUNTED))
    expect(tuple(map(type, parts)) in (_PARTS, _COUNTED), record)
    for entry in (*channels.values(), *held):
        if type(entry) is not list or len(entry) != 2:
            expect(False, record)
    for distance, keys in held:
        expect(type(distance) is int and type(keys) is list and all(type(key) is str for key in keys), record)
        expect(channels.keys().isdisjoint(keys), record)
        channels.update((key, [DISTANCE, distance]) for key in keys)
    return Opened(outcomes, channels, *rest)


def inline_outcomes(opened: Opened) -> list[tuple[str, int | None, bytes]]:
    """Return (node, index, body of a `succeeded` record) for each outcome this body holds itself."""
    return [(o[0], o[1], pack_references([FORMAT, o[3], o[4]])) for o in opened.outcomes if len(o) == 5]
