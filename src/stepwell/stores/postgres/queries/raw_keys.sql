-- Every data key, to check it. Locks nothing.
select thread_id, name, key_id, wrapped, created_at, digest
from stepwell.keys
order by thread_id
