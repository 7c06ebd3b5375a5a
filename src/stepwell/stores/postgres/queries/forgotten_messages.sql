-- The messages of a thread that were consumed by a record which is there no more. Takes no lock of its own: it is asked
-- in the transaction that pruned them.
select thread_id, message_id, ordinal, kind, key, created_at, content, consumed_seq, body, digest from stepwell.inbox
where thread_id = %(thread_id)s
  and consumed_seq > 0
  and not exists (
    select from stepwell.records as r where r.thread_id = inbox.thread_id and r.seq = inbox.consumed_seq
  )
