-- What a filter looks at of the checkpoints that `line.sql` lists, in its order, with nothing else of them; `needles` as in
-- `scan_history.sql`. Locks nothing.
with recursive line (seq) as (
  select %(line_from)s::bigint
  union all
  select case when a.seq is null then p.parent_seq else a.shown_seq end from line
  join stepwell.checkpoints as p on p.thread_id = %(thread_id)s and p.seq = line.seq
  left join stepwell.anchors as a on a.thread_id = %(thread_id)s and a.seq = p.parent_seq
  where case when a.seq is null then p.parent_seq else a.shown_seq end is not null
)
select c.seq, c.source, c.step, c.run_id, c.lineage, c.metadata
from line
cross join lateral (
  select * from stepwell.checkpoints as own where own.thread_id = %(thread_id)s and own.seq = line.seq offset 0
) as c
where c.namespace = %(namespace)s
  and (%(before_seq)s::bigint is null or c.seq < %(before_seq)s::bigint)
  and (select coalesce(bool_and(strpos(c.metadata, needle) > 0), true) from unnest(%(needles)s::text[]) as needle)
