-- Add a record. Takes no lock of its own: the thread row was updated first, in the same transaction.
insert into stepwell.records
  (thread_id, namespace, lineage, seq, base_seq, base_digest, ordinal, kind, task_id, run_id, created_at, body, digest)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
