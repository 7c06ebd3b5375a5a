-- The checkpoints at these seqs (an array), in seq order. Locks nothing.
select thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
  fingerprint, created_at, metadata, body, digest
from stepwell.checkpoints
where thread_id = %(thread_id)s and seq = any(%(seqs)s::bigint[])
order by seq
