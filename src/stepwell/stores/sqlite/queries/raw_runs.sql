-- Every row of runs of one thread, whose id is bytes too: none is skipped, however it is damaged. Text comes as bytes.
-- What is not of its column's type, and might not even be fetched, comes as null. Locks nothing.
select
  iif(typeof(run_id) = 'text', cast(run_id as blob), null),
  iif(typeof(thread_id) = 'text', cast(thread_id as blob), null),
  iif(typeof(lineage) = 'integer', lineage, null),
  iif(typeof(status) = 'text', cast(status as blob), null),
  iif(typeof(durability) = 'text', cast(durability as blob), null),
  iif(typeof(input) = 'blob', input, null),
  iif(typeof(input_digest) = 'blob', input_digest, null),
  iif(typeof(base_seq) = 'integer', base_seq, null),
  iif(typeof(started_at) = 'integer', started_at, null),
  iif(typeof(finished_at) = 'integer', finished_at, null),
  iif(typeof(recoveries) = 'integer', recoveries, null),
  iif(typeof(progress_seq) = 'integer', progress_seq, null),
  iif(typeof(checkpoint_id) = 'text', cast(checkpoint_id as blob), null),
  iif(typeof(error) = 'text', cast(error as blob), null),
  iif(typeof(kind) = 'text', cast(kind as blob), null),
  iif(typeof(takeovers) = 'integer', takeovers, null),
  iif(typeof(events) = 'integer', events, null),
  iif(typeof(epoch) = 'integer', epoch, null),
  iif(typeof(digest) = 'blob', digest, null)
from runs
where thread_id = cast(:thread_id as text)
order by run_id
