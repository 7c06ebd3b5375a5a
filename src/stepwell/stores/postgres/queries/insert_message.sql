-- Leave a message. It locks no thread row: the thread may not be there, and whoever holds it is not asked.
insert into stepwell.inbox (thread_id, message_id, ordinal, kind, key, created_at, content, consumed_seq, body, digest)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
