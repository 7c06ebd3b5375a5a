-- A checkpoint and its ancestors, parent by parent: newest first, since a parent is always older, and over what was pruned. Walks no further than
-- max_rows matches (-1: to the beginning): `offset 0` keeps the line outermost. A parent in another namespace ends the line.
-- Locks nothing.
with recursive line (seq) as (
  select %(line_from)s::bigint
  union all
  select case when a.seq is null then p.parent_seq else a.shown_seq end from line
  join stepwell.checkpoints as p on p.thread_id = %(thread_id)s and p.seq = line.seq
  left join stepwell.anchors as a on a.thread_id = %(thread_id)s and a.seq = p.parent_seq
  where case when a.seq is null then p.parent_seq else a.shown_seq end is not null
)
select c.thread_id, c.namespace, c.lineage, c.seq, c.checkpoint_id, c.parent_seq, c.parent_digest, c.step, c.source, c.run_id,
  c.graph_id, c.version, c.fingerprint, c.created_at, c.metadata, c.body, c.digest
from line
cross join lateral (
  select * from stepwell.checkpoints as own where own.thread_id = %(thread_id)s and own.seq = line.seq offset 0
) as c
where c.namespace = %(namespace)s
  and (%(before_seq)s::bigint is null or c.seq < %(before_seq)s::bigint)
limit nullif(%(max_rows)s::bigint, -1)
