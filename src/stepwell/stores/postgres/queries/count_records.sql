-- How many records a base has between two ordinals: the index alone says it. Locks nothing.
select count(*)
from stepwell.records
where thread_id = %(thread_id)s and base_seq = %(base_seq)s and ordinal between %(first)s and %(last)s
