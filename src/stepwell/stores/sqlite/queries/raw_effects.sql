-- Every row of effects of one thread, whose id is bytes too: none is skipped, however it is damaged. Text comes as bytes.
-- What is not of its column's type, and might not even be fetched, comes as null. Locks nothing.
select
  iif(typeof(key) = 'text', cast(key as blob), null),
  iif(typeof(thread_id) = 'text', cast(thread_id as blob), null),
  iif(typeof(scope) = 'text', cast(scope as blob), null),
  iif(typeof(lineage) = 'integer', lineage, null),
  iif(typeof(position) = 'text', cast(position as blob), null),
  iif(typeof(node) = 'text', cast(node as blob), null),
  iif(typeof(activation) = 'integer', activation, null),
  iif(typeof(call_id) = 'text', cast(call_id as blob), null),
  iif(typeof(name) = 'text', cast(name as blob), null),
  iif(typeof(status) = 'text', cast(status as blob), null),
  iif(typeof(epoch) = 'integer', epoch, null),
  iif(typeof(run_id) = 'text', cast(run_id as blob), null),
  iif(typeof(fingerprint) = 'text', cast(fingerprint as blob), null),
  iif(typeof(seq) = 'integer', seq, null),
  iif(typeof(attempts) = 'integer', attempts, null),
  iif(typeof(started_at) = 'integer', started_at, null),
  iif(typeof(finished_at) = 'integer', finished_at, null),
  iif(typeof(body) = 'blob', body, null),
  iif(typeof(digest) = 'blob', digest, null)
from effects
where thread_id = cast(:thread_id as text)
order by seq, key
