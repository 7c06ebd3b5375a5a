-- The values of a thread that have these names (an array, in hex), by name. Locks nothing.
select thread_id, name, body, digest
from stepwell.blobs
where thread_id = %(thread_id)s and name in (select decode(each, 'hex') from unnest(%(names)s::text[]) as each)
order by name
