-- The checkpoint of a lineage that continues a given one, looked for from that one on: it is near, unless other lineages
-- were driven in between. Locks nothing.
select thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
  fingerprint, created_at, metadata, body, digest
from stepwell.checkpoints
where thread_id = %(thread_id)s and seq > %(parent_seq)s and parent_seq = %(parent_seq)s and lineage = %(lineage)s
order by seq
limit 1
