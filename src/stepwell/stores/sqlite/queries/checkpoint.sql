-- One checkpoint by its id, unless it is only held. Locks nothing.
select thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
  fingerprint, created_at, metadata, body, digest
from checkpoints
where thread_id = :thread_id and checkpoint_id = :checkpoint_id and namespace = :namespace
  and not exists (select 1 from anchors where anchors.thread_id = checkpoints.thread_id and anchors.seq = checkpoints.seq)
