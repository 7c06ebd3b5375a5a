-- One checkpoint by its id. Locks nothing.
select thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
  fingerprint, created_at, metadata, body, digest
from stepwell.checkpoints
where thread_id = %(thread_id)s and checkpoint_id = %(checkpoint_id)s and namespace = %(namespace)s
