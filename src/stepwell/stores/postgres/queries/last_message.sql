-- The ordinal of the last message to a thread. The inbox was locked before. Locks nothing more.
select max(ordinal)
from stepwell.inbox
where thread_id = %(thread_id)s
