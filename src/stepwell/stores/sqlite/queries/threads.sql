-- Threads, last changed first; :max_rows -1 means all. Locks nothing.
select thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at, digest
from threads
order by updated_at desc, thread_id
limit :max_rows
