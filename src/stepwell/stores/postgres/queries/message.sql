-- A message by its id, consumed or not. Locks nothing.
select thread_id, message_id, ordinal, kind, key, created_at, content, consumed_seq, body, digest
from stepwell.inbox
where thread_id = %(thread_id)s and message_id = %(message_id)s
