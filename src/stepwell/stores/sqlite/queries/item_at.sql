-- The item at a place. Locks nothing.
select ordinal, namespace, key, value, created_at, updated_at, ttl, expires_at, digest
from items where ordinal = :ordinal
