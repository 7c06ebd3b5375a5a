-- The id of the checkpoint at a seq. Locks nothing.
select checkpoint_id from stepwell.checkpoints
where thread_id = %(thread_id)s and seq = %(seq)s
