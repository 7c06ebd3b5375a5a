"""What a checkpoint needs of other rows: the one place that knows, for whoever keeps, copies, checks or deletes rows.

Direct needs only: what the rows named here need in their turn, they say themselves. The rule: who asks this knows
nothing of the layout, so a new kind of entry is added here and in reading, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from stepwell.superstep import blobs, body as layout


class References(NamedTuple):
    """The rows of the same thread without which a checkpoint cannot be read."""

    checkpoints: frozenset[int]
    """Seqs of the checkpoints that hold values of it."""
    records: frozenset[int]
    """Seqs of the records that hold outcomes it was made of."""
    blobs: frozenset[bytes] = frozenset()
    """Names of the values that are stored apart."""


def references(opened: layout.Opened, seq: int) -> References:
    """Return what the checkpoint at `seq` needs of other rows. Call it within `layout.reading(...)`: a body that does
    not fit its layout raises what that turns into a CorruptRecordError."""
    holders = frozenset(layout.needs(opened, seq)) - {seq}
    records = frozenset(int(outcome[3]) for outcome in opened.outcomes if len(outcome) == 4)
    return References(holders, records, frozenset(blobs.names_of([opened.outcomes, opened.channels, opened.next])))


def blobs_of(record_body: bytes) -> frozenset[bytes]:
    """Return the names of the values that a record, of whatever kind, needs."""
    return frozenset(blobs.names_in(record_body))


class Needed(NamedTuple):
    """The rows of the same thread without which some channels of a checkpoint cannot be read."""

    checkpoints: Mapping[int, frozenset[str]]
    """Seq → the channels that are read there."""
    records: frozenset[int]


def needed(opened: layout.Opened, seq: int, channels: Collection[str] | None) -> Needed:
    """Return what these channels of a checkpoint need of other rows; None: all of them, and what it was made of. A row
    that others need for one channel needs nothing for its others. Call it as `references`."""
    found: dict[int, frozenset[str]] = {}
    records: set[int] = set()
    for key in opened.channels if channels is None else channels:
        entry = opened._replace(channels={key: opened.channels[key]})
        for holder in layout.needs(entry, seq):
            if holder != seq:
                found[holder] = found.get(holder, frozenset()) | {key}
        records |= layout.records_of(opened, key)
    if channels is None:
        records |= references(opened, seq).records
    return Needed(found, frozenset(records))
