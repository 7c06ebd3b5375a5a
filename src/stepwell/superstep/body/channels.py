"""How a checkpoint's body says what a channel holds: one entry each, `[kind, payload]`.

    FULL      the value's bytes
    SNAPSHOT  [rule, weight, bytes]: the value whole, as a channel with this rule stores it before deltas
    DELTA     [number, runs, parts, weight, due]: what this superstep wrote, folded over the value in the row before it
              in its chain. Its writes are `parts`, which no other row of the chain holds, and then those of the
              outcomes in this body, in their order. It is the `number`th after the snapshot. `runs` say which rows the
              chain has before this one, back to the snapshot, which names the rule. Behind `weight` bytes (with the
              snapshot) in all, more than `due`, the value is looked at again. What is empty or zero is left out at the
              end
    POINTER   [outcome, write]: the value is that write of an outcome of this body; of one that a record holds, the only
              write of the channel (no write named)
    DISTANCE  how many seqs back the row lies that holds the value. A body lists the channels of one distance together,
              apart from the others: most of a state is as it was, where it was

A part is a write, or `[bytes]`, the bytes of a list of writes. A run is two numbers: so many rows, each so many seqs
before the one above it.

No value is decoded here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from stepwell.errors import CorruptRecordError

FULL, DELTA, POINTER, DISTANCE, SNAPSHOT = range(5)


Stored = Any
"""A value as it stands in a body: its bytes, or the `BlobRef` that stands for them."""


Part = Any
"""Writes as they stand in a DELTA: one `Stored`, or a list of one `Stored` that is a list of writes."""


class Delta(NamedTuple):
    """The payload of a DELTA."""

    number: int
    runs: list[int]
    parts: Sequence[Part] = ()
    weight: int = 0
    due: int = 0


def runs_of(seq: int, rows: Iterable[int]) -> list[int]:
    """Return rows before `seq`, each before the one above it, as runs."""
    runs: list[int] = []
    for row in rows:
        distance, seq = seq - row, row
        if runs and runs[-1] == distance:
            runs[-2] += 1
        else:
            runs += [1, distance]
    return runs


def rows_of(seq: int, runs: Sequence[int]) -> list[int]:
    """Return the rows that these runs are. Raises ValueError for what are none."""
    rows: list[int] = []
    for count, distance in zip(runs[::2], runs[1::2], strict=True):
        if distance < 1 or count < 1 or distance * count > seq:
            raise ValueError("it is a delta that follows nothing")
        last = seq - distance * count
        rows += range(seq - distance, last - 1, -distance)
        seq = last
    if not rows:
        raise ValueError("it is a delta that follows nothing")
    return rows


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
    counted: int = 0
    """How many records stood on the checkpoint before this one when it was made: the last of them leaves no gap."""


def needs(opened: Opened, seq: int) -> set[int]:
    """Return the seqs of the rows that hold what this checkpoint does not: unchanged values, and the deltas before its
    own."""
    needed: set[int] = set()
    for kind, payload in opened.channels.values():
        if kind == DISTANCE:
            needed.add(seq - payload)
        elif kind == DELTA:
            needed.update(rows_of(seq, payload[1]))
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


def delta_of(opened: Opened, key: str) -> Delta | None:
    """Return what a body that holds a channel's writes says of them; None where it holds the value."""
    kind, payload = opened.channels[key]
    return Delta(*payload) if kind == DELTA else None


def chain_rows(opened: Opened, key: str, seq: int, record: str) -> list[int]:
    """Return the rows of a chain before the one at `seq`, back to the one that holds the value whole; none where this
    body does."""
    kind, payload = opened.channels[key]
    if kind != DELTA:
        return []
    try:
        return rows_of(seq, payload[1])
    except (LookupError, TypeError, ValueError) as error:
        raise CorruptRecordError(record=record, reason=f"channel {key!r}: {error}") from error


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
