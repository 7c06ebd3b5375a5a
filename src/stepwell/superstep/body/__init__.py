"""The layout of stored bodies: superstep values in msgpack lists, user values inside as the codec's own bytes.

`checkpoint.py` is a checkpoint's, `channels.py` how it says what a channel holds, `deltas.py` when that is only what
was written; `records.py` are the records', `values.py` what both have in them, `frame.py` what all have around it.
"""

from stepwell.superstep.body.channels import (
    DELTA,
    DISTANCE,
    FULL,
    POINTER,
    SNAPSHOT,
    Opened,
    Stored,
    delta_of,
    holds_of,
    needs,
    records_of,
    value_bytes,
    writes_of,
)
from stepwell.superstep.body.checkpoint import Encoded, Source, encode_checkpoint, inline_outcomes, open_checkpoint
from stepwell.superstep.body.deltas import Chain, Ground, Unwritten, chain_of
from stepwell.superstep.body.frame import FORMAT, reading
from stepwell.superstep.body.records import (
    decode_answer,
    decode_attempt,
    decode_cancelled,
    decode_failed,
    decode_interrupted,
    decode_succeeded,
    encode_answer,
    encode_attempt,
    encode_discarded,
    encode_failed,
    encode_interrupted,
    encode_succeeded,
    stored_copy,
    succeeded_writes,
    without_items,
)
from stepwell.superstep.body.values import decode_next, decode_routes, decode_writes, encode_routes, encode_writes

__all__ = [
    "Chain",
    "DELTA",
    "DISTANCE",
    "Encoded",
    "FORMAT",
    "FULL",
    "Ground",
    "Opened",
    "POINTER",
    "SNAPSHOT",
    "Source",
    "Stored",
    "Unwritten",
    "chain_of",
    "decode_answer",
    "decode_attempt",
    "decode_cancelled",
    "decode_failed",
    "decode_interrupted",
    "decode_next",
    "decode_routes",
    "decode_succeeded",
    "decode_writes",
    "delta_of",
    "encode_answer",
    "encode_attempt",
    "encode_checkpoint",
    "encode_discarded",
    "encode_failed",
    "encode_interrupted",
    "encode_routes",
    "encode_succeeded",
    "encode_writes",
    "holds_of",
    "inline_outcomes",
    "needs",
    "open_checkpoint",
    "reading",
    "records_of",
    "stored_copy",
    "succeeded_writes",
    "value_bytes",
    "without_items",
    "writes_of",
]
