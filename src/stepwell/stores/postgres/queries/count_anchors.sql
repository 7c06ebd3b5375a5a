-- How many checkpoints of a thread have an anchor. Locks nothing.
select count(*) from stepwell.anchors where thread_id = %(thread_id)s and seq > 0
