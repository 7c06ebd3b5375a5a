-- Seq and lineage of the newest checkpoint of a namespace. Locks nothing.
select seq, lineage from stepwell.checkpoints
where thread_id = %(thread_id)s and namespace = %(namespace)s
order by seq desc
limit 1
