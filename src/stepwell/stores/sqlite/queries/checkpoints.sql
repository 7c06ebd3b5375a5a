-- The checkpoints at these seqs (a JSON array of integers), in seq order. Locks nothing.
select thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
  fingerprint, created_at, metadata, body, digest
from checkpoints
where thread_id = :thread_id and seq in (select value from json_each(:seqs))
order by seq
