"""The contract between the engine and a database: the records, and what a store must promise about them.

A store remembers; it decides nothing. It moves bytes that the layers above encoded and fences every write by the
thread's epoch. What is written:

- a *checkpoint* row per superstep, edit, fork or input: immutable, chained to its parent by digest;
- a *record* row per pending outcome, failure, question, answer or attempt: immutable, chained to its base checkpoint;
- a *run* row per drive and a *thread* row per thread: the only rows that are updated, always under the epoch;
- a *message* row per message from outside: appended by anybody, and once marked, with the record that says what came
  of it, by the lease holder;
- an *event* row per lifecycle event of a run that keeps a log: immutable, chained to the event before it;
- an *anchor* row where a thread was pruned: it stands in the chain for what was cut;
- a *blob* row per large value of a thread, named by its content, referred to by checkpoints and records;
- an *item* row per item of the item store: of no thread, changed by whoever writes it. What a run's nodes wrote comes
  with the commit that consumes their outcomes, and lands only with it;
- a *key* row per thread of an encrypted database: the wrapped data key of what its rows say, written with its first
  row and gone with its last.

**Lock order.** Every writing transaction locks the thread row first, by updating it under its epoch and head, and
writes nothing if that update changed no row. Reads never lock.

**Digests.** `seal_checkpoint` and `seal_record` hash every column, the body as stored and the parent's digest. A store
verifies each row it returns and raises `CorruptRecordError`; it never skips one. Thread, run and event rows are sealed
by the store, which alone knows the lease columns and the ends of the logs.
"""

from stepwell.store.contract import Reader, Store
from stepwell.store.faults import Fault, RawRow
from stepwell.store.items import ItemRow, ItemWrites, is_there, written
from stepwell.store.keys import WHOLE_DATABASE, KeyRow, KeyWrites, seal_key
from stepwell.store.queries import (
    CheckpointOutline,
    EffectsQuery,
    HistoryQuery,
    JournalQuery,
    RecordOutline,
    ThreadsQuery,
)
from stepwell.store.queued import Queued
from stepwell.store.rows import (
    COUNTING,
    DAMAGED,
    DELETED,
    NO_DIGEST,
    PRUNED,
    AnchorRow,
    BlobRow,
    CheckpointRow,
    EffectChange,
    EffectRow,
    EventDraft,
    EventRow,
    LineageRow,
    MessageRow,
    RecordRow,
    RunRow,
    ShapeRow,
    ThreadRow,
    content_digest,
    digest_of,
    seal_anchor,
    seal_blob,
    seal_checkpoint,
    seal_effect,
    seal_record,
    sealed_checkpoint,
)
from stepwell.store.sealing import ENCRYPTED, PLAIN, Sealer, is_encrypted
from stepwell.store.writes import (
    Claim,
    Commit,
    Consumed,
    Counts,
    Deletion,
    Message,
    Pruned,
    Pruning,
    Range,
    Repair,
    Restoration,
    Rows,
    StoredRow,
    StoreSize,
)

__all__ = [
    "COUNTING",
    "AnchorRow",
    "CheckpointOutline",
    "BlobRow",
    "CheckpointRow",
    "Claim",
    "Commit",
    "Consumed",
    "Counts",
    "DELETED",
    "ENCRYPTED",
    "Deletion",
    "EffectChange",
    "EffectRow",
    "EffectsQuery",
    "EventDraft",
    "EventRow",
    "Fault",
    "HistoryQuery",
    "JournalQuery",
    "ItemRow",
    "ItemWrites",
    "KeyRow",
    "KeyWrites",
    "LineageRow",
    "Message",
    "MessageRow",
    "NO_DIGEST",
    "PLAIN",
    "Repair",
    "DAMAGED",
    "PRUNED",
    "Pruned",
    "Pruning",
    "Queued",
    "Range",
    "RawRow",
    "Reader",
    "RecordOutline",
    "RecordRow",
    "Restoration",
    "Rows",
    "RunRow",
    "Sealer",
    "ShapeRow",
    "Store",
    "StoreSize",
    "StoredRow",
    "ThreadRow",
    "ThreadsQuery",
    "WHOLE_DATABASE",
    "content_digest",
    "digest_of",
    "is_encrypted",
    "is_there",
    "seal_anchor",
    "seal_blob",
    "seal_checkpoint",
    "seal_effect",
    "seal_key",
    "seal_record",
    "sealed_checkpoint",
    "written",
]
