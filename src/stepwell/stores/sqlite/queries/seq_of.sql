-- The seq of a checkpoint by its id, unless it is only held. Locks nothing.
select seq from checkpoints
where thread_id = :thread_id and checkpoint_id = :checkpoint_id and namespace = :namespace
  and not exists (select 1 from anchors where anchors.thread_id = checkpoints.thread_id and anchors.seq = checkpoints.seq)
