-- Threads, last changed first and, of one moment, by id; tombstones are none. :statuses is a JSON array, :filter a JSON
-- object of which every entry must match the newest root checkpoint: a key or a value is data there and cannot widen the
-- result. Null means any, :max_rows -1 all. Text comes as bytes,
-- and what is not of its column's type as null, as in `raw_threads`. Locks nothing.
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
where status <> 'deleted'
  and (:statuses is null or status in (select value from json_each(:statuses)))
  and (:before_at is null or updated_at < :before_at or (updated_at = :before_at and thread_id > :before_id))
  and (:filter is null or (
    select matches_filter(:filter, source, step, run_id, lineage, metadata) from checkpoints
    where checkpoints.thread_id = threads.thread_id and namespace = ''
    order by seq desc
    limit 1
  ))
order by updated_at desc, thread_id
limit :max_rows
