-- Every row of events of one thread, also of runs whose rows are missing, to check it. Locks nothing.
select run_id, thread_id, ordinal, kind, created_at, previous_digest, body, digest
from stepwell.events
where run_id in (
  select run_id from stepwell.runs where thread_id = %(thread_id)s
  union all
  select run_id from stepwell.events where thread_id = %(thread_id)s and ordinal = 1
)
order by run_id, ordinal
