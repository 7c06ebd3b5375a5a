-- A thread's effects at a position, in all lineages, the last one first. Locks nothing.
select key, thread_id, scope, lineage, position, node, activation, call_id, name, status, epoch, run_id, fingerprint,
  seq, attempts, started_at, finished_at, body, digest
from stepwell.effects
where thread_id = %(thread_id)s and position = %(position)s
order by seq desc, key desc
