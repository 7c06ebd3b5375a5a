-- The shapes of the graphs that wrote a thread's checkpoints. Locks nothing.
select fingerprint, shape from shapes
where fingerprint in (select fingerprint from checkpoints where thread_id = :thread_id)
