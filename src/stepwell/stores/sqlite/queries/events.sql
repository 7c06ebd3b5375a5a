-- The log of a run behind an ordinal, oldest first; :max_rows -1 means no bound. Locks nothing.
select run_id, thread_id, ordinal, kind, created_at, previous_digest, body, digest
from events
where run_id = :run_id and ordinal > :after
order by ordinal
limit :max_rows
