-- The records at these seqs (a JSON array of integers), in seq order. Locks nothing.
select thread_id, namespace, lineage, seq, base_seq, base_digest, ordinal, kind, task_id, run_id, created_at, body, digest
from records
where thread_id = :thread_id and seq in (select value from json_each(:seqs))
order by seq
