-- The records at these seqs (an array), in seq order. Locks nothing.
select thread_id, namespace, lineage, seq, base_seq, base_digest, ordinal, kind, task_id, run_id, created_at, body, digest
from stepwell.records
where thread_id = %(thread_id)s and seq = any(%(seqs)s::bigint[])
order by seq
