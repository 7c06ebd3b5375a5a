-- Every row of events of one thread, whose id is bytes too, also of runs whose rows are missing: none is skipped, however
-- it is damaged. Text comes as bytes. What is not of its column's type, and might not even be fetched, comes as null.
-- Locks nothing.
select
  iif(typeof(run_id) = 'text', cast(run_id as blob), null),
  iif(typeof(thread_id) = 'text', cast(thread_id as blob), null),
  iif(typeof(ordinal) = 'integer', ordinal, null),
  iif(typeof(kind) = 'text', cast(kind as blob), null),
  iif(typeof(created_at) = 'integer', created_at, null),
  iif(typeof(previous_digest) = 'blob', previous_digest, null),
  iif(typeof(body) = 'blob', body, null),
  iif(typeof(digest) = 'blob', digest, null)
from events
where run_id in (
  select run_id from runs where thread_id = cast(:thread_id as text)
  union all
  select run_id from events where thread_id = cast(:thread_id as text) and ordinal = 1
)
order by run_id, ordinal
