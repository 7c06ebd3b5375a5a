-- The wrapped data key of a thread, '' for the database's own. Locks nothing.
select thread_id, name, key_id, wrapped, created_at, digest from stepwell.keys where thread_id = %(thread_id)s
