-- Delete the values of a thread that are stored apart. Takes no lock of its own: the thread row was made a tombstone first,
-- in the same transaction.
delete from blobs where thread_id = :thread_id
