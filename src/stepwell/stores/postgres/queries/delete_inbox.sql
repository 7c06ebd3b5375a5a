-- Delete the messages to a thread. Takes no lock of its own: the thread row, if there is one, was made a tombstone first,
-- in the same transaction.
delete from stepwell.inbox where thread_id = %(thread_id)s
