-- One checkpoint by its id, unless it is only held. Locks nothing.
select thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
  fingerprint, created_at, metadata, body, digest
from stepwell.checkpoints
where thread_id = %(thread_id)s and checkpoint_id = %(checkpoint_id)s and namespace = %(namespace)s
  and not exists (select from stepwell.anchors as a where a.thread_id = checkpoints.thread_id and a.seq = checkpoints.seq)
