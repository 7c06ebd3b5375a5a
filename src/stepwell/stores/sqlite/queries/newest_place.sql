-- Seq and lineage of the newest checkpoint of a namespace. Locks nothing.
select seq, lineage from checkpoints
where thread_id = :thread_id and namespace = :namespace
order by seq desc
limit 1
