-- Every record of a thread, of all namespaces, in seq order: what a copy takes. Locks nothing.
select thread_id, namespace, lineage, seq, base_seq, base_digest, ordinal, kind, task_id, run_id, created_at, body, digest
from stepwell.records
where thread_id = %(thread_id)s
order by seq
