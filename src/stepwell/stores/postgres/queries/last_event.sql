-- The end of a run's log: ordinal and digest of its last event. The thread row was locked before. Locks nothing more.
select ordinal, digest
from stepwell.events
where run_id = $1
order by ordinal desc
limit 1
