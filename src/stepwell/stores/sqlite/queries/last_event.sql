-- The end of a run's log: ordinal and digest of its last event. The caller holds the write lock. Locks nothing more.
select ordinal, digest
from events
where run_id = ?1
order by ordinal desc
limit 1
