"""Where threads come from: the record that a copy, or a fork into a thread of its own, begins with or ends in.

It stands on no checkpoint (base 0), so that a thread without one can have it too. A copy of a copy has one for each.
"""

from __future__ import annotations

from stepwell.store import NO_DIGEST, Reader, RecordRow, Sealer
from stepwell.superstep import lifecycle
from stepwell.superstep.origin import Origin, decode_origin, encode_origin


def origin_record(sealer: Sealer, thread_id: str, seq: int, ordinal: int, origin: Origin, now: int) -> RecordRow:
    """Return the record, sealed. `ordinal` counts the records that stand on no checkpoint before it."""
    body = encode_origin(origin)
    row = RecordRow(thread_id, "", 0, seq, 0, NO_DIGEST, ordinal, lifecycle.ORIGIN, "", "", now, body, b"")
    return sealer.record(row)


def origin_of(reader: Reader, thread_id: str) -> Origin | None:
    """Return where a thread comes from, its last origin first; None where it began by itself."""
    found = origins_of(reader, thread_id)
    return found[-1] if found else None


def origins_of(reader: Reader, thread_id: str) -> list[Origin]:
    """Return where a thread comes from, and where that one came from, the first of them first."""
    found = [row for row in reader.records(thread_id, 0) if row.kind == lifecycle.ORIGIN]
    return [decode_origin(row.body, f"origin of thread {thread_id}") for row in found]


def root_of(reader: Reader, thread_id: str) -> str:
    """Return the thread at the beginning of all copies and forks that led to this one: itself, where it is none."""
    found = origins_of(reader, thread_id)
    return found[0].root if found else thread_id
