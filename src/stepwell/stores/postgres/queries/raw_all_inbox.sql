-- Every message to all threads, to check them. Locks nothing.
select thread_id, message_id, ordinal, kind, key, created_at, content, consumed_seq, body, digest
from stepwell.inbox
order by thread_id, ordinal
