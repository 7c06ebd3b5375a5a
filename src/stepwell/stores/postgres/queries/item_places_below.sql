-- Where the items of a namespace, and of those below it, are that have not expired. Names are compared byte by byte:
-- low and high bound those that begin with the namespace and a period. Locks nothing.
select ordinal from stepwell.items
where (namespace = %(namespace)s or (namespace >= %(low)s and namespace < %(high)s))
  and (expires_at is null or expires_at > %(now)s)
