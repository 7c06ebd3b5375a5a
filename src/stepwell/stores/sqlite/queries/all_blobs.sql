-- Every value of a thread that is stored apart, by name: what a copy takes. Locks nothing.
select thread_id, name, body, digest
from blobs
where thread_id = :thread_id
order by name
