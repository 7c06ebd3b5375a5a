-- Where the items are that have not expired. Locks nothing.
select ordinal from stepwell.items
where expires_at is null or expires_at > %(now)s
