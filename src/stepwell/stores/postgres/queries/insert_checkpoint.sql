-- Add a checkpoint. Takes no lock of its own: the thread row was updated first, in the same transaction.
insert into stepwell.checkpoints
  (thread_id, namespace, lineage, seq, checkpoint_id, parent_seq, parent_digest, step, source, run_id, graph_id, version,
   fingerprint, created_at, metadata, body, digest)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
