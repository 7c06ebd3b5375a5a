-- Every data key, to check it. Text comes as bytes, and what is not of its column's type as null. Locks nothing.
select
  iif(typeof(thread_id) = 'text', cast(thread_id as blob), null),
  iif(typeof(name) = 'blob', name, null),
  iif(typeof(key_id) = 'text', cast(key_id as blob), null),
  iif(typeof(wrapped) = 'blob', wrapped, null),
  iif(typeof(created_at) = 'integer', created_at, null),
  iif(typeof(digest) = 'blob', digest, null)
from keys
order by thread_id
