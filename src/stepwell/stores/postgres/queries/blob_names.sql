-- The names of a thread's values that are stored apart. Locks nothing.
select name from stepwell.blobs where thread_id = %(thread_id)s
