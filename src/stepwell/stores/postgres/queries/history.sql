-- Checkpoints of a namespace, newest first by seq, without those that are only held. A bound that is null, and max_rows -1 are none. Locks nothing.
select thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
  fingerprint, created_at, metadata, body, digest
from stepwell.checkpoints
where thread_id = %(thread_id)s
  and namespace = %(namespace)s
  and seq < coalesce(%(before_seq)s::bigint, 9223372036854775807)
  and seq >= coalesce(%(since_seq)s::bigint, 0)
  and not exists (select from stepwell.anchors as a where a.thread_id = checkpoints.thread_id and a.seq = checkpoints.seq)
order by seq desc
limit nullif(%(max_rows)s::bigint, -1)
