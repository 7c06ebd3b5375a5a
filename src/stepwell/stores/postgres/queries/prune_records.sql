-- Take the records between two seqs, both included, out of a thread. Takes no lock of its own: the thread row was updated
-- first, in the same transaction, and the anchors that stand for what is cut are written in it too.
delete from stepwell.records where thread_id = $1 and seq between $2 and $3
