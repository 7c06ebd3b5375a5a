-- The rows under a key: one, or one for each thread that shares it, by thread. Locks nothing.
select key, thread_id, scope, lineage, position, node, activation, call_id, name, status, epoch, run_id, fingerprint,
  seq, attempts, started_at, finished_at, body, digest
from stepwell.effects
where key = %(key)s
order by thread_id
