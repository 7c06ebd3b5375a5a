-- Say what stands for a checkpoint that is cut, or is only held. Takes no lock of its own: the thread row was updated
-- first, in the same transaction. Numbered parameters, as in the fence.
insert or replace into anchors
  (thread_id, seq, held, parent_seq, parent_digest, shown_seq, row_digest, checkpoints, records, notes, pruned_at, digest)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
