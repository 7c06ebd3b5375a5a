-- Delete a value that nothing refers to any more. Takes no lock of its own: the thread row was updated first, in the same
-- transaction.
delete from blobs where thread_id = ?1 and name = ?2
