-- Every row of records of one thread, whose id is bytes too: none is skipped, however it is damaged. Text comes as bytes.
-- What is not of its column's type, and might not even be fetched, comes as null. Locks nothing.
select
  iif(typeof(thread_id) = 'text', cast(thread_id as blob), null),
  iif(typeof(namespace) = 'text', cast(namespace as blob), null),
  iif(typeof(lineage) = 'integer', lineage, null),
  iif(typeof(seq) = 'integer', seq, null),
  iif(typeof(base_seq) = 'integer', base_seq, null),
  iif(typeof(base_digest) = 'blob', base_digest, null),
  iif(typeof(ordinal) = 'integer', ordinal, null),
  iif(typeof(kind) = 'text', cast(kind as blob), null),
  iif(typeof(task_id) = 'text', cast(task_id as blob), null),
  iif(typeof(run_id) = 'text', cast(run_id as blob), null),
  iif(typeof(created_at) = 'integer', created_at, null),
  iif(typeof(body) = 'blob', body, null),
  iif(typeof(digest) = 'blob', digest, null)
from records
where thread_id = cast(:thread_id as text)
order by seq
