-- The records of several base checkpoints (a JSON array of seqs), base by base in seq order. Locks nothing.
select thread_id, namespace, lineage, seq, base_seq, base_digest, ordinal, kind, task_id, run_id, created_at, body, digest
from records
where thread_id = :thread_id and base_seq in (select value from json_each(:base_seqs))
order by base_seq, ordinal
