-- Every row of records of one thread, to check it. Locks nothing.
select thread_id, namespace, lineage, seq, base_seq, base_digest, ordinal, kind, task_id, run_id, created_at, body,
  digest
from stepwell.records
where thread_id = %(thread_id)s
order by seq
