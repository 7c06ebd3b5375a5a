-- Every row of events of one thread, to check it. Locks nothing.
select run_id, thread_id, ordinal, kind, created_at, previous_digest, body, digest
from stepwell.events
where run_id in (select run_id from stepwell.runs where thread_id = %(thread_id)s)
order by run_id, ordinal
