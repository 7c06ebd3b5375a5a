-- Every item, to check it. Text comes as bytes, and what is not of its column's type, and might not even be fetched, as
-- null (-1 where null is a value): none is skipped, however it is damaged. Locks nothing.
select
  iif(typeof(ordinal) = 'integer', ordinal, null),
  iif(typeof(namespace) = 'text', cast(namespace as blob), null),
  iif(typeof(key) = 'text', cast(key as blob), null),
  iif(typeof(value) = 'blob', value, null),
  iif(typeof(created_at) = 'integer', created_at, null),
  iif(typeof(updated_at) = 'integer', updated_at, null),
  iif(typeof(ttl) in ('integer', 'null'), ttl, -1),
  iif(typeof(expires_at) in ('integer', 'null'), expires_at, -1),
  iif(typeof(digest) = 'blob', digest, null)
from items
order by ordinal
