-- The seq of the newest checkpoint of a namespace in one lineage. Locks nothing.
select seq from stepwell.checkpoints
where thread_id = %(thread_id)s and namespace = %(namespace)s and lineage = %(lineage)s
order by seq desc
limit 1
