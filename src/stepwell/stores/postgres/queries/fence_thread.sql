-- The fence: move the head of a thread while the writer's epoch, run, process and head are still the thread's.
-- Changes no row otherwise, and then nothing else of the commit may be written. Locks the thread row first; an expired
-- lease that nobody took still holds.
update stepwell.threads set
  status = $3, run_id = $5, holder = $6, lease_until = $7, head_seq = $8, head_digest = $9, lineages = $10,
  updated_at = $11, digest = $12
where thread_id = $1 and epoch = $4 and head_seq = $13 and run_id = $14 and holder = $15 and graph_id = $2
