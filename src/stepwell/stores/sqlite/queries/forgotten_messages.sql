-- The messages of a thread that were consumed by a record which is there no more. Takes no lock of its own: it is asked
-- in the transaction that pruned them.
select thread_id, message_id, ordinal, kind, key, created_at, content, consumed_seq, body, digest from inbox
where thread_id = :thread_id
  and consumed_seq > 0
  and not exists (select 1 from records where records.thread_id = inbox.thread_id and records.seq = inbox.consumed_seq)
