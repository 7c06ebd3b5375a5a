-- The highest seq that any row of a thread has; 0 where there is none. Locks nothing.
select max(
  coalesce((select max(seq) from checkpoints where thread_id = :thread_id), 0),
  coalesce((select max(seq) from records where thread_id = :thread_id), 0)
)
