-- The seq of a checkpoint by its id. Locks nothing.
select seq from stepwell.checkpoints
where thread_id = %(thread_id)s and checkpoint_id = %(checkpoint_id)s and namespace = %(namespace)s
