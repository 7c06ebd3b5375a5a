-- Delete an item. Takes no lock of its own: the transaction holds the write lock from its first line.
delete from items where ordinal = ?1
