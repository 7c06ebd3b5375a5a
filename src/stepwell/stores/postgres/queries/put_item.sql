-- Write an item as it shall be, over the one at its place. Its name was locked before it was looked at,
-- in the same transaction.
insert into stepwell.items (ordinal, namespace, key, value, created_at, updated_at, ttl, expires_at, digest)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (ordinal) do update set
  value = $4, created_at = $5, updated_at = $6, ttl = $7, expires_at = $8, digest = $9
