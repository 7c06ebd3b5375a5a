-- Wrapped data keys by thread id, those behind after; null is none. Locks nothing.
select thread_id, name, key_id, wrapped, created_at, digest
from stepwell.keys
where %(after)s::text is null or thread_id > %(after)s
order by thread_id
limit nullif(%(max_rows)s::bigint, -1)
