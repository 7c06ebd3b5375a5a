-- Mark a message as consumed and drop its body. Takes no lock of its own: the thread row was updated first, in the same
-- transaction, and nobody else consumes.
update stepwell.inbox
set consumed_seq = %(consumed_seq)s, body = %(body)s, digest = %(digest)s
where thread_id = %(thread_id)s and message_id = %(message_id)s
