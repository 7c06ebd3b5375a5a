-- Write the data key of a thread unless it has one. Returns a row where the thread has this key now, whoever wrote it, and
-- none where it has another. Locks the key's row either way, so that a deletion cannot take it from under rows that are
-- being written with it.
insert into stepwell.keys (thread_id, name, key_id, wrapped, created_at, digest)
values ($1, $2, $3, $4, $5, $6)
on conflict (thread_id) do update set created_at = keys.created_at where keys.name = $2
returning digest
