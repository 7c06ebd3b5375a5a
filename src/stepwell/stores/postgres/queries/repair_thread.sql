-- Give a thread another row in place of one that need not verify. Changes no row where it is not the one that was seen:
-- every write of a thread changes its digest. Locks the thread row first.
update stepwell.threads set
  graph_id = $2, status = $3, epoch = $4, run_id = $5, holder = $6, lease_until = $7, head_seq = $8, head_digest = $9,
  lineages = $10, updated_at = $11, digest = $12
where thread_id = $1 and digest is not distinct from $13
