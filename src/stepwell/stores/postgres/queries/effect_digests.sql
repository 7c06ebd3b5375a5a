-- What the rows under a key are now, as digests, by thread. The key was locked before, in the same
-- transaction: whoever asks writes only if they are what it saw. Locks nothing more.
select digest from stepwell.effects where key = %(key)s order by thread_id
