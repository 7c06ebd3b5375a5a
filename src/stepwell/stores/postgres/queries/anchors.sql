-- What stands for the rows of a thread that were pruned, by seq, without the row that counts them. Locks
-- nothing.
select thread_id, seq, held, parent_seq, parent_digest, shown_seq, row_digest, checkpoints, records, notes, pruned_at,
  digest
from stepwell.anchors
where thread_id = %(thread_id)s and seq > 0
order by seq
