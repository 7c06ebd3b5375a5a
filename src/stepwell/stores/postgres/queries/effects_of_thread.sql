-- A thread's effects behind a place, by seq and key; max_rows -1 means no bound. Locks nothing.
select key, thread_id, scope, lineage, position, node, activation, call_id, name, status, epoch, run_id, fingerprint,
  seq, attempts, started_at, finished_at, body, digest
from stepwell.effects
where thread_id = %(thread_id)s and (seq, key) > (%(after_seq)s, %(after_key)s)
order by seq, key
limit nullif(%(max_rows)s::bigint, -1)
