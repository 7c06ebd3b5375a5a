-- The shapes of the graphs that wrote a thread's checkpoints. Locks nothing.
select fingerprint, shape from stepwell.shapes
where fingerprint in (select fingerprint from stepwell.checkpoints where thread_id = %(thread_id)s)
