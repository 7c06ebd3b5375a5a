-- Checkpoints of a namespace, newest first by seq, without those that are only held. A bound that is null, and :max_rows -1 are none. :filter is a JSON
-- object of which every entry must match; a key or a value is data there and cannot widen the result. Locks nothing.
select thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
  fingerprint, created_at, metadata, body, digest
from checkpoints
where thread_id = :thread_id
  and namespace = :namespace
  and seq < coalesce(:before_seq, 9223372036854775807)
  and seq >= coalesce(:since_seq, 0)
  and (:filter is null or matches_filter(:filter, source, step, run_id, lineage, metadata))
  and not exists (select 1 from anchors where anchors.thread_id = checkpoints.thread_id and anchors.seq = checkpoints.seq)
order by seq desc
limit :max_rows
