-- Drops what may not serve any more. Takes the write lock of the cache's file.
delete from cached where expires_at <= :now
