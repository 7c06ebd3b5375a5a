-- Every row of blobs of one thread, to check it. Locks nothing.
select thread_id, name, body, digest
from stepwell.blobs
where thread_id = %(thread_id)s
order by name
