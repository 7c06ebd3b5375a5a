-- The threads with these ids (an array), last changed first and, of one moment, by id. Locks nothing.
select thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at, digest
from stepwell.threads
where thread_id = any(%(thread_ids)s::text[])
order by updated_at desc, thread_id
