-- How many records a base has between two ordinals: the index alone says it. Locks nothing.
select count(*)
from records
where thread_id = :thread_id and base_seq = :base_seq and ordinal between :first and :last
