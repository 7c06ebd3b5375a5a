-- Whether a checkpoint stands at a seq of a thread, or a record whose base is there or was pruned: one row or none. Locks nothing.
select 1 from stepwell.checkpoints where thread_id = %(thread_id)s and seq = %(seq)s
union all
select 1 from stepwell.records as record where thread_id = %(thread_id)s and seq = %(seq)s and (
  exists (select 1 from stepwell.checkpoints where thread_id = %(thread_id)s and seq = record.base_seq)
  or exists (select 1 from stepwell.anchors where thread_id = %(thread_id)s and seq >= record.base_seq)
)
