-- The row of one thread, whose id is bytes too, however it is damaged. Text
-- comes as bytes. What is not of its column's type, and might not even be fetched, comes as null. Locks nothing.
select
  iif(typeof(thread_id) = 'text', cast(thread_id as blob), null),
  iif(typeof(graph_id) = 'text', cast(graph_id as blob), null),
  iif(typeof(status) = 'text', cast(status as blob), null),
  iif(typeof(epoch) = 'integer', epoch, null),
  iif(typeof(run_id) = 'text', cast(run_id as blob), null),
  iif(typeof(holder) = 'text', cast(holder as blob), null),
  iif(typeof(lease_until) = 'real', lease_until, null),
  iif(typeof(head_seq) = 'integer', head_seq, null),
  iif(typeof(head_digest) = 'blob', head_digest, null),
  iif(typeof(lineages) = 'integer', lineages, null),
  iif(typeof(updated_at) = 'integer', updated_at, null),
  iif(typeof(digest) = 'blob', digest, null)
from threads
where thread_id = cast(:thread_id as text)
