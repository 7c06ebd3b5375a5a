-- The namespaces that hold an item that has not expired. Locks nothing.
select distinct namespace from stepwell.items where expires_at is null or expires_at > %(now)s
