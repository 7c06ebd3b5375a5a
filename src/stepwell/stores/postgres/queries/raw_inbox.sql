-- Every message to a thread, to check it. Locks nothing.
select thread_id, message_id, ordinal, kind, key, created_at, content, consumed_seq, body, digest
from stepwell.inbox
where thread_id = %(thread_id)s
order by ordinal
