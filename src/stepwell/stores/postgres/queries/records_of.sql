-- The records of several base checkpoints (an array of seqs), base by base in seq order. Locks nothing.
select thread_id, namespace, lineage, seq, base_seq, base_digest, ordinal, kind, task_id, run_id, created_at, body, digest
from stepwell.records
where thread_id = %(thread_id)s and base_seq = any(%(base_seqs)s::bigint[])
order by base_seq, ordinal
