-- Whether a record stands at a seq of a thread, whatever it holds: one row or none. Locks nothing.
select 1 from stepwell.records where thread_id = %(thread_id)s and seq = %(seq)s
