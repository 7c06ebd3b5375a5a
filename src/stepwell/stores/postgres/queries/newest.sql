-- The newest checkpoint of a namespace over all lineages, by seq. Locks nothing.
select thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
  fingerprint, created_at, metadata, body, digest
from stepwell.checkpoints
where thread_id = %(thread_id)s and namespace = %(namespace)s
order by seq desc
limit 1
