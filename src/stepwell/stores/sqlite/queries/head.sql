-- What stands at a seq of a thread, checkpoint or record: at most one row. Locks nothing.
select digest from checkpoints where thread_id = :thread_id and seq = :seq
union all
select digest from records where thread_id = :thread_id and seq = :seq
