-- What a filter looks at of the threads that `threads.sql` lists, in its order: the newest root checkpoint of each; `needles`
-- as in `scan_history.sql`. Locks nothing.
select t.thread_id, c.source, c.step, c.run_id, c.lineage, c.metadata
from stepwell.threads as t
cross join lateral (
  select source, step, run_id, lineage, metadata
  from stepwell.checkpoints as own
  where own.thread_id = t.thread_id and own.namespace = ''
  order by own.seq desc
  limit 1
) as c
where t.status <> 'deleted'
  and (%(statuses)s::text[] is null or t.status = any(%(statuses)s::text[]))
  and (
    %(before_at)s::bigint is null or t.updated_at < %(before_at)s::bigint
    or (t.updated_at = %(before_at)s::bigint and t.thread_id > %(before_id)s::text)
  )
  and (select coalesce(bool_and(strpos(c.metadata, needle) > 0), true) from unnest(%(needles)s::text[]) as needle)
order by t.updated_at desc, t.thread_id
