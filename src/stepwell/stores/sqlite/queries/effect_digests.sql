-- What the rows under a key are now, as digests, by thread. Takes no lock of its own: the caller holds the write lock, and
-- writes only if they are what it saw.
select digest from effects where key = :key order by thread_id
