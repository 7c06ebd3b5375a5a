-- Wrapped data keys by thread id, those behind :after; null is none. Locks nothing.
select thread_id, name, key_id, wrapped, created_at, digest
from keys
where :after is null or thread_id > :after
order by thread_id
limit :max_rows
