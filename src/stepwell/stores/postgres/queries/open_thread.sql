-- Open a thread that did not exist. Changes no row where it exists already: the claim is stale, read again. Waits for
-- another process that is opening it at this moment. Locks the thread row first; nothing of the claim is written before.
insert into stepwell.threads
  (thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at, digest)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (thread_id) do nothing
