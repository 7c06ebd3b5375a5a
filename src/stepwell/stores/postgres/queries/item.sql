-- One item, expired or not. Locks nothing; inside a writing transaction its lock is held already.
select ordinal, namespace, key, value, created_at, updated_at, ttl, expires_at, digest
from stepwell.items where namespace = %(namespace)s and key = %(key)s
