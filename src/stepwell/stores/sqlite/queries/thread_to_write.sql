-- One thread, about to be written. The caller holds the write lock. Locks nothing more.
select thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at, digest
from threads
where thread_id = :thread_id
