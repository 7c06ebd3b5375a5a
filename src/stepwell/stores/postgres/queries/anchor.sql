-- What stands for one checkpoint that was pruned, or is only held. Locks nothing.
select thread_id, seq, held, parent_seq, parent_digest, shown_seq, row_digest, checkpoints, records, notes, pruned_at,
  digest
from stepwell.anchors
where thread_id = %(thread_id)s and seq = %(seq)s
