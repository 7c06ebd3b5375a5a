"""A checkpoint with what is recorded on it, read without the graph that wrote it: no values, no alias, no check."""

from __future__ import annotations

from stepwell.codec import Codec
from stepwell.runtime.holders import Holders
from stepwell.runtime.loading import apply_records
from stepwell.store import CheckpointRow, Reader
from stepwell.superstep import body as layout
from stepwell.superstep.state import Base, Identity, State


def bare_base(reader: Reader, codec: Codec, row: CheckpointRow, opened: layout.Opened) -> Base:
    """Return the checkpoint in `row`, whose body is `opened`, with everything recorded on it and no values."""
    holders, records = Holders(row.thread_id, [row]), reader.records(row.thread_id, row.seq)
    holders.know(row.seq, opened)
    holders.fetch_referred(reader, row.seq, records)
    codec = holders.reading(codec)
    state = State(
        values={},
        next=layout.decode_next(codec, opened.next),
        activations=opened.activations,
        step=row.step,
    )
    identity = Identity(row.graph_id, row.version, row.thread_id, row.namespace, row.checkpoint_id)
    base = Base(state, identity, row.lineage, row.seq, row.digest)
    apply_records(codec, base, records)
    return base
