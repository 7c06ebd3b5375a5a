-- Every item, to check it. Locks nothing.
select ordinal, namespace, key, value, created_at, updated_at, ttl, expires_at, digest
from stepwell.items
order by ordinal
