-- Whether a record stands at a seq of a thread, whatever it holds: one row or none. Locks nothing.
select 1 from records where thread_id = :thread_id and seq = :seq
