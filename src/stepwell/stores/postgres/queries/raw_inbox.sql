-- Every message to a thread, or (null) to all, to check it. Locks nothing.
select thread_id, message_id, ordinal, kind, key, created_at, content, consumed_seq, body, digest
from stepwell.inbox
where %(thread_id)s::text is null or thread_id = %(thread_id)s
order by thread_id, ordinal
