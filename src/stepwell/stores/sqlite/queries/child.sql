-- The checkpoint of a lineage that continues a given one, looked for from that one on: it is near, unless other lineages
-- were driven in between. Locks nothing.
select thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
  fingerprint, created_at, metadata, body, digest
from checkpoints
where thread_id = :thread_id and seq > :parent_seq and +parent_seq = :parent_seq and lineage = :lineage
order by seq
limit 1
