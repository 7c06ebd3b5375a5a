-- Write a run as it shall be. A run id that belongs to another thread changes no row. Takes no lock of its own: the
-- thread row was updated first, in the same transaction.
insert into stepwell.runs
  (run_id, thread_id, lineage, status, durability, input, input_digest, base_seq, started_at, finished_at, recoveries,
   progress_seq, checkpoint_id, error, kind, takeovers, events, epoch, digest)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
on conflict (run_id) do update set
  lineage = $3, status = $4, durability = $5, input = $6, input_digest = $7, base_seq = $8, started_at = $9,
  finished_at = $10, recoveries = $11, progress_seq = $12, checkpoint_id = $13, error = $14, kind = $15, takeovers = $16,
  events = $17, epoch = $18, digest = $19
where runs.thread_id = $2
