-- Threads, last changed first and, of one moment, by id; tombstones are none. statuses is an array. Null means any, max_rows
-- -1 all. Locks nothing.
select thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at, digest
from stepwell.threads
where status <> 'deleted'
  and (%(statuses)s::text[] is null or status = any(%(statuses)s::text[]))
  and (
    %(before_at)s::bigint is null or updated_at < %(before_at)s::bigint
    or (updated_at = %(before_at)s::bigint and thread_id > %(before_id)s::text)
  )
order by updated_at desc, thread_id
limit nullif(%(max_rows)s::bigint, -1)
