-- Every row of anchors of one thread, whose id is bytes too: none is skipped, however it is damaged. Text comes as bytes.
-- What is not of its column's type, and might not even be fetched, comes as null (-1 where null is a value). Locks nothing.
select
  iif(typeof(thread_id) = 'text', cast(thread_id as blob), null),
  iif(typeof(seq) = 'integer', seq, null),
  iif(typeof(held) = 'integer', held, null),
  iif(typeof(parent_seq) in ('integer', 'null'), parent_seq, -1),
  iif(typeof(parent_digest) = 'blob', parent_digest, null),
  iif(typeof(shown_seq) in ('integer', 'null'), shown_seq, -1),
  iif(typeof(row_digest) = 'blob', row_digest, null),
  iif(typeof(checkpoints) = 'integer', checkpoints, null),
  iif(typeof(records) = 'integer', records, null),
  iif(typeof(notes) = 'integer', notes, null),
  iif(typeof(pruned_at) = 'integer', pruned_at, null),
  iif(typeof(digest) = 'blob', digest, null)
from anchors
where thread_id = cast(:thread_id as text)
order by seq
