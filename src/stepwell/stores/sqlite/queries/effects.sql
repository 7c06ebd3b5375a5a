-- The effects of all threads behind a place, by thread, seq and key; :max_rows -1 means no bound. Text comes as
-- bytes, and what is not of its column's type as null, as in `raw_effects`. Locks nothing.
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
where (thread_id, seq, key) > (:after_thread, :after_seq, :after_key)
order by thread_id, seq, key
limit :max_rows
