-- The id of the checkpoint at a seq. Locks nothing.
select checkpoint_id from checkpoints
where thread_id = :thread_id and seq = :seq
