-- What stands at a seq of a thread, checkpoint or record: at most one row. A record whose base is missing, and was not
-- pruned, is none: what the thread stands on is lost. Locks nothing.
select digest from stepwell.checkpoints where thread_id = %(thread_id)s and seq = %(seq)s
union all
select digest from stepwell.records as record where thread_id = %(thread_id)s and seq = %(seq)s and (
  base_seq = 0
  or exists (select 1 from stepwell.checkpoints where thread_id = record.thread_id and seq = record.base_seq)
  or exists (select 1 from stepwell.anchors where thread_id = record.thread_id and seq >= record.base_seq)
)
