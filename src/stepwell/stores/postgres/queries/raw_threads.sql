-- The row of one thread, to check it. Locks nothing.
select thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at,
  digest
from stepwell.threads
where thread_id = %(thread_id)s
