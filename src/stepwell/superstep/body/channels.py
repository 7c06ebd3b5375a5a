"""How a checkpoint's body says what a channel holds: one entry each, `[kind, payload]`.

    FULL      the value's bytes
    SNAPSHOT  [rule, weight, bytes]: the value whole, as a channel with this rule stores it before deltas
    DELTA     [rule, number, weight, snapshot, links, writes]: what this superstep wrote, folded by the rule over the
              value in the row `links[0]` back. Its writes are those of the outcomes in this body, in their order, after
              `writes`, which no row holds otherwise. It is the `number`th after the snapshot, which has `snapshot`
              bytes; all up to it have `weight`. `links` are distances to the rows of the chain before this one
    POINTER   [outcome, write]: the value is that write of an outcome of this body; of one that a record holds, the only
              write of the channel (no write named)
    DISTANCE  how many seqs back the row lies that holds the value. A body lists the channels of one distance together,
              apart from the others: most of a state is as it was, where it was

No value is decoded here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from stepwell.errors import CorruptRecordError

FULL, DELTA, POINTER, DISTANCE, SNAPSHOT = range(5)


Stored = Any
"""A value as it stands in a body: its bytes, or the `BlobRef` that stands for them."""


class Delta(NamedTuple):
    """The payload of a DELTA."""

    rule: str
    number: int
    weight: int
    snapshot: int
    links: list[int]
    writes: list[Stored]


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


def needs(opened: Opened, seq: int) -> set[int]:
    """Return the seqs of the rows that hold what this checkpoint does not: unchanged values, and the deltas before its
    own."""
    needed: set[int] = set()
    for kind, payload in opened.channels.values():
        if kind == DISTANCE:
            needed.add(seq - payload)
        elif kind == DELTA:
            needed.update(seq - link for link in payload[4])
    return needed


def holds_of(opened: Opened, seq: int) -> dict[str, int]:
    """Return, per stored channel, the seq of the row that holds its value."""
    return {key: seq - payload if kind == DISTANCE else seq for key, (kind, payload) in opened.channels.items()}


def value_bytes(opened: Opened, key: str, record: str) -> Stored:
    """Return the bytes of a channel whose value this body holds whole."""
    kind, payload = opened.channels[key]
    if kind == FULL:
        return payload
    if kind == SNAPSHOT:
        return payload[2]
    if kind == POINTER and payload[1] is not None:
        return opened.outcomes[payload[0]][3][payload[1]][1]
    raise CorruptRecordError(record=record, reason=f"channel {key!r} has entry kind {kind}, which holds no value")


def delta_of(opened: Opened, key: str, record: str) -> Delta | None:
    """Return what a body that holds a channel's writes says of them; None where it holds the value."""
    kind, payload = opened.channels[key]
    if kind != DELTA:
        return None
    delta = Delta(*payload)
    if not delta.links or min(delta.links) < 1:
        raise CorruptRecordError(record=record, reason=f"channel {key!r} is a delta that follows nothing")
    return delta


def carried_writes(opened: Opened, key: str) -> list[Stored]:
    """Return the writes of a delta that no outcome of its body holds."""
    kind, payload = opened.channels[key]
    return Delta(*payload).writes if kind == DELTA else []


def writes_of(opened: Opened, key: str) -> Iterator[Stored | int]:
    """Yield what this superstep wrote to a channel, in the order in which it was folded: bytes, or the seq of the
    record that holds an outcome with writes of its own."""
    for outcome in opened.outcomes:
        if len(outcome) == 4:
            yield int(outcome[3])
            continue
        for channel, data in outcome[3]:
            if channel == key and data:
                yield data


def records_of(opened: Opened, key: str) -> set[int]:
    """Return the seqs of the records in which writes of a channel may stand that its entry refers to."""
    kind, payload = opened.channels[key]
    if kind == DELTA:
        return {int(outcome[3]) for outcome in opened.outcomes if len(outcome) == 4}
    if kind == POINTER and payload[1] is None:
        return {int(opened.outcomes[payload[0]][3])}
    return set()
