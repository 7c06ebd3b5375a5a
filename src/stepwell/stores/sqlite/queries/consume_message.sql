-- Mark a message as consumed and drop its body. Takes no lock of its own: the thread row was updated first, in the same
-- transaction, and nobody else consumes.
update inbox
set consumed_seq = :consumed_seq, body = :body, digest = :digest
where thread_id = :thread_id and message_id = :message_id
