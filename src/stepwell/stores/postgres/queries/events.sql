-- The log of a run behind an ordinal, oldest first; max_rows -1 means no bound. Locks nothing.
select run_id, thread_id, ordinal, kind, created_at, previous_digest, body, digest
from stepwell.events
where run_id = %(run_id)s and ordinal > %(after)s
order by ordinal
limit nullif(%(max_rows)s::bigint, -1)
