-- The lineage of a checkpoint. Locks nothing.
select lineage from stepwell.checkpoints
where thread_id = %(thread_id)s and seq = %(seq)s
