-- Every row of effects of one thread, to check it. Locks nothing.
select key, thread_id, scope, lineage, position, node, activation, call_id, name, status, epoch, run_id, fingerprint,
  seq, attempts, started_at, finished_at, body, digest
from stepwell.effects
where thread_id = %(thread_id)s
order by seq, key
