-- Threads, last changed first and, of one moment, by id; tombstones are none. :statuses is a JSON array, :filter a JSON
-- object of which every entry must match the newest root checkpoint: a key or a value is data there and cannot widen the
-- result. Null means any, :max_rows -1 all. Locks nothing.
select thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at, digest
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
