-- Delete an item. Its name was locked before it was looked at, in the same transaction.
delete from stepwell.items where ordinal = $1
