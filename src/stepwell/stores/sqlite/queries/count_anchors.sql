-- How many checkpoints of a thread have an anchor. Locks nothing.
select count(*) from anchors where thread_id = :thread_id and seq > 0
