-- The ordinal of the last message to a thread. The caller holds the write lock. Locks nothing more.
select max(ordinal)
from inbox
where thread_id = :thread_id
