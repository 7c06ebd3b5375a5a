-- The values of a thread that have these names (a JSON array, in hex), by name. Locks nothing.
select thread_id, name, body, digest
from blobs
where thread_id = :thread_id and name in (select unhex(value) from json_each(:names))
order by name
