-- Whether a checkpoint stands at a seq of a thread, or a record whose base is there or was pruned: one row or none. Locks nothing.
select 1 from checkpoints where thread_id = :thread_id and seq = :seq
union all
select 1 from records as record where thread_id = :thread_id and seq = :seq and (
  exists (select 1 from checkpoints where thread_id = :thread_id and seq = record.base_seq)
  or exists (select 1 from anchors where thread_id = :thread_id and seq >= record.base_seq)
)
