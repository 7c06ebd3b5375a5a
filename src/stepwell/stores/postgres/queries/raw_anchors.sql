-- Every row of anchors of one thread, to check it. Locks nothing.
select thread_id, seq, held, parent_seq, parent_digest, shown_seq, row_digest, checkpoints, records, notes, pruned_at,
  digest
from stepwell.anchors
where thread_id = %(thread_id)s
order by seq
