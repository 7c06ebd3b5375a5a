-- Drops what may not serve any more.
delete from cached where expires_at <= :now
