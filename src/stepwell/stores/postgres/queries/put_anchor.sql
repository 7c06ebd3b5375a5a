-- Say what stands for a checkpoint that is cut, or is only held. Takes no lock of its own: the thread row was updated
-- first, in the same transaction.
insert into stepwell.anchors
  (thread_id, seq, held, parent_seq, parent_digest, shown_seq, row_digest, checkpoints, records, notes, pruned_at, digest)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (thread_id, seq) do update set
  held = $3, parent_seq = $4, parent_digest = $5, shown_seq = $6, row_digest = $7, checkpoints = $8, records = $9,
  notes = $10, pruned_at = $11, digest = $12
