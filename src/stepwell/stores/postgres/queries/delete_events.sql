-- Delete the events of a thread's runs. Takes no lock of its own: the thread row was made a tombstone first, in the same
-- transaction, and the runs are still there.
delete from stepwell.events where run_id in (select run_id from stepwell.runs where thread_id = %(thread_id)s)
