-- A message by its id, consumed or not. Locks nothing.
select thread_id, message_id, ordinal, kind, key, created_at, content, consumed_seq, body, digest
from inbox
where thread_id = :thread_id and message_id = :message_id
