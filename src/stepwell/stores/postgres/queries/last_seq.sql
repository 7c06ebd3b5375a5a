-- The highest seq that any row of a thread has; 0 where there is none. Locks nothing.
select greatest(
  coalesce((select max(seq) from stepwell.checkpoints where thread_id = %(thread_id)s), 0),
  coalesce((select max(seq) from stepwell.records where thread_id = %(thread_id)s), 0)
)
