-- The seq of the newest checkpoint of a namespace in one lineage. Locks nothing.
select seq from checkpoints
where thread_id = :thread_id and namespace = :namespace and lineage = :lineage
order by seq desc
limit 1
