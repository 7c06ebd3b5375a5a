-- The seq of a checkpoint by its id, unless it is only held. Locks nothing.
select seq from stepwell.checkpoints
where thread_id = %(thread_id)s and checkpoint_id = %(checkpoint_id)s and namespace = %(namespace)s
  and not exists (select from stepwell.anchors as a where a.thread_id = checkpoints.thread_id and a.seq = checkpoints.seq)
