-- What stands at a seq of a thread, checkpoint or record: at most one row. Locks nothing.
select digest from stepwell.checkpoints where thread_id = %(thread_id)s and seq = %(seq)s
union all
select digest from stepwell.records where thread_id = %(thread_id)s and seq = %(seq)s
