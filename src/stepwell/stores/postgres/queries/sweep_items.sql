-- Delete the items that have expired; return the place of each. Locks their rows, in no order.
delete from stepwell.items where expires_at <= $1 returning ordinal
