-- The records of a base checkpoint, in seq order. Locks nothing.
select thread_id, namespace, lineage, seq, base_seq, base_digest, ordinal, kind, task_id, run_id, created_at, body, digest
from stepwell.records
where thread_id = %(thread_id)s and base_seq = %(base_seq)s
order by seq
