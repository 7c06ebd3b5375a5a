-- The id of the checkpoint at a seq; of one that was pruned, or is only held, that of the nearest one before it that is
-- kept, "" where there is none. Locks nothing.
select coalesce(c.checkpoint_id, '') from stepwell.anchors as a
left join stepwell.checkpoints as c on c.thread_id = a.thread_id and c.seq = a.shown_seq
where a.thread_id = %(thread_id)s and a.seq = %(seq)s
union all
select checkpoint_id from stepwell.checkpoints
where thread_id = %(thread_id)s and seq = %(seq)s
  and not exists (select from stepwell.anchors as a where a.thread_id = %(thread_id)s and a.seq = %(seq)s)
