-- Delete the items that have expired; return the place of each. Takes no lock of its own: the transaction holds the
-- write lock from its first line.
delete from items where expires_at <= ?1 returning ordinal
