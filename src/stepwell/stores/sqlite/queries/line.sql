-- A checkpoint and its ancestors, parent by parent: newest first, since a parent is always older, and over what was pruned. Walks no further than
-- :max_rows matches (-1: to the beginning). A parent in another namespace ends the line. :filter is as in the history of
-- a thread. Locks nothing.
with recursive line (seq) as (
  select :line_from
  union all
  select iif(anchors.seq is null, checkpoints.parent_seq, anchors.shown_seq) from line
  join checkpoints on checkpoints.thread_id = :thread_id and checkpoints.seq = line.seq
  left join anchors on anchors.thread_id = :thread_id and anchors.seq = checkpoints.parent_seq
  where iif(anchors.seq is null, checkpoints.parent_seq, anchors.shown_seq) is not null
)
select c.thread_id, c.namespace, c.lineage, c.seq, c.checkpoint_id, c.parent_seq, c.parent_digest, c.step, c.source, c.run_id,
  c.graph_id, c.version, c.fingerprint, c.created_at, c.metadata, c.body, c.digest
from line
cross join checkpoints as c on c.thread_id = :thread_id and c.seq = line.seq
where c.namespace = :namespace
  and (:before_seq is null or c.seq < :before_seq)
  and (:filter is null or matches_filter(:filter, c.source, c.step, c.run_id, c.lineage, c.metadata))
limit :max_rows
