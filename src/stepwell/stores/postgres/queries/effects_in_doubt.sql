-- Intents and doubts behind a place, by thread, seq and key, of one thread or, where thread_id is null, of all; max_rows -1
-- means no bound. Locks nothing.
select key, thread_id, scope, lineage, position, node, activation, call_id, name, status, epoch, run_id, fingerprint,
  seq, attempts, started_at, finished_at, body, digest
from stepwell.effects
where status in ('intent', 'doubt')
  and (%(thread_id)s::text is null or thread_id = %(thread_id)s)
  and (thread_id, seq, key) > (%(after_thread)s, %(after_seq)s, %(after_key)s)
order by thread_id, seq, key
limit nullif(%(max_rows)s::bigint, -1)
