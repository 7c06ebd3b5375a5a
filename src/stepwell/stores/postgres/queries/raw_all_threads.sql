-- The rows of all threads, to check them. Locks nothing.
select thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at,
  digest
from stepwell.threads
order by thread_id
