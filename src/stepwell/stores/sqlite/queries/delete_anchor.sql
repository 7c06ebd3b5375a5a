-- Drop an anchor that stands for nothing any more. Takes no lock of its own: the thread row was updated first, in the same
-- transaction.
delete from anchors where thread_id = ?1 and seq = ?2
