-- Turn a thread into its tombstone: the epoch moves on, so whoever holds the thread is fenced out. Locks the thread row
-- first; nothing of the thread is deleted before it. The row has been locked since its epoch was read.
update stepwell.threads set
  graph_id = $2, status = $3, epoch = $4, run_id = $5, holder = $6, lease_until = $7, head_seq = $8, head_digest = $9,
  lineages = $10, updated_at = $11, digest = $12
where thread_id = $1
