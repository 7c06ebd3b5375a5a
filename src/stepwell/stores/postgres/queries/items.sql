-- The items at these places (an array of ordinals), in their order. Locks nothing.
select ordinal, namespace, key, value, created_at, updated_at, ttl, expires_at, digest
from stepwell.items
where ordinal = any(%(ordinals)s::bigint[])
order by ordinal
