-- Take an existing thread: $4 is the seen epoch plus one. Changes no row where the thread is not as seen any more, or
-- where somebody holds a live lease, by the database's clock unless $14 says what time it is. $15 is true where the seen
-- holder is known to be dead; the holder cannot have changed while the epoch has not. Locks the thread row first.
update stepwell.threads set
  graph_id = $2, status = $3, epoch = $4, run_id = $5, holder = $6, lease_until = $7, head_seq = $8, head_digest = $9,
  lineages = $10, updated_at = $11, digest = $12
where thread_id = $1 and epoch = $4 - 1 and head_seq = $13
  and (run_id = '' or lease_until <= coalesce($14::double precision, extract(epoch from clock_timestamp())) or $15)
