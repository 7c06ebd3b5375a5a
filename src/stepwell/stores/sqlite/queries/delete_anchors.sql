-- Delete the anchors of a thread. Takes no lock of its own: the thread row was made a tombstone first, in the same
-- transaction.
delete from anchors where thread_id = :thread_id
