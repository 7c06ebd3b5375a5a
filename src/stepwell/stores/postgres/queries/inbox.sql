-- The messages of a thread that wait, of one kind or (null) of all, in the order in which they came. Locks nothing.
select thread_id, message_id, ordinal, kind, key, created_at, content, consumed_seq, body, digest
from stepwell.inbox
where thread_id = %(thread_id)s and consumed_seq = 0 and (%(kind)s::text is null or kind = %(kind)s)
order by ordinal
