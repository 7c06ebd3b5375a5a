-- Delete a run of a thread. Takes no lock of its own: the thread row was updated first, in the same transaction.
delete from stepwell.runs where run_id = $1 and thread_id = $2
