-- Forget the data key of a thread: whatever was encrypted with it, wherever a copy of that is, cannot be read any more.
-- The thread row was locked before. First of what is deleted: a message that comes meanwhile waits here, and brings the key.
delete from stepwell.keys where thread_id = %(thread_id)s
