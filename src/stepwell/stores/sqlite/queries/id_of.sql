-- The id of the checkpoint at a seq; of one that was pruned, or is only held, that of the nearest one before it that is
-- kept, "" where there is none. Locks nothing.
select coalesce(checkpoints.checkpoint_id, '') from anchors
left join checkpoints on checkpoints.thread_id = anchors.thread_id and checkpoints.seq = anchors.shown_seq
where anchors.thread_id = :thread_id and anchors.seq = :seq
union all
select checkpoint_id from checkpoints
where thread_id = :thread_id and seq = :seq
  and not exists (select 1 from anchors where anchors.thread_id = :thread_id and anchors.seq = :seq)
