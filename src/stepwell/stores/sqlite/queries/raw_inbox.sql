-- Every message to a thread, whose id is bytes too: none is skipped, however it is damaged. Text
-- comes as bytes. What is not of its column's type, and might not even be fetched, comes as null. Locks nothing.
select
  iif(typeof(thread_id) = 'text', cast(thread_id as blob), null),
  iif(typeof(message_id) = 'text', cast(message_id as blob), null),
  iif(typeof(ordinal) = 'integer', ordinal, null),
  iif(typeof(kind) = 'text', cast(kind as blob), null),
  iif(typeof(key) = 'text', cast(key as blob), null),
  iif(typeof(created_at) = 'integer', created_at, null),
  iif(typeof(content) = 'blob', content, null),
  iif(typeof(consumed_seq) = 'integer', consumed_seq, null),
  iif(typeof(body) = 'blob', body, null),
  iif(typeof(digest) = 'blob', digest, null)
from inbox
where thread_id = cast(:thread_id as text)
order by ordinal
