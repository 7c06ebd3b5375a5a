-- Every value of a thread that is stored apart, by name: what a copy takes. Locks nothing.
select thread_id, name, body, digest
from stepwell.blobs
where thread_id = %(thread_id)s
order by name
