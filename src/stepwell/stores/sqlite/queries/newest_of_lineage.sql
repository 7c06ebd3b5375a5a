-- The newest checkpoint of a namespace in one lineage, by seq. Locks nothing.
select thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
  fingerprint, created_at, metadata, body, digest
from checkpoints
where thread_id = :thread_id and namespace = :namespace and lineage = :lineage
order by seq desc
limit 1
