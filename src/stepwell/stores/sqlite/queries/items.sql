-- The items at these places (a JSON array of ordinals), in their order. Locks nothing.
select ordinal, namespace, key, value, created_at, updated_at, ttl, expires_at, digest
from items where ordinal in (select value from json_each(:ordinals))
order by ordinal
