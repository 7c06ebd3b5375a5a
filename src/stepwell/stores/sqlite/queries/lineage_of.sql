-- The lineage of a checkpoint. Locks nothing.
select lineage from checkpoints
where thread_id = :thread_id and seq = :seq
