"""Which large values of a thread nothing refers to once rows are cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stepwell.runtime.loading import row_name
from stepwell.store import Reader
from stepwell.superstep import body as layout
from stepwell.superstep.references import blobs_of, references
from stepwell.superstep.retention import Marked

AT_ONCE = 256
"""How many rows are held in memory."""


def unneeded(reader: Reader, thread_id: str, marked: Marked, records: Iterable[int]) -> set[bytes]:
    """Return the names of the values that no row which stays refers to. Reads nothing where the thread has none."""
    left = reader.blob_names(thread_id)
    if left:
        for seqs in _batches(sorted(marked.kept | marked.held)):
            for row in reader.checkpoints(thread_id, seqs):
                with layout.reading(row_name(row)):
                    left -= references(layout.open_checkpoint(row.body, row_name(row)), row.seq).blobs
        for seqs in _batches([seq for seq in records if seq not in marked.cut_notes]):
            for record in reader.records_at(thread_id, seqs):
                left -= blobs_of(record.body)
    return left


def _batches(seqs: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(seqs), AT_ONCE):
        yield seqs[start : start + AT_ONCE]
