-- The seq of a checkpoint by its id. Locks nothing.
select seq from checkpoints
where thread_id = :thread_id and checkpoint_id = :checkpoint_id and namespace = :namespace
