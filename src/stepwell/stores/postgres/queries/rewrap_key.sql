-- Put a data key wrapped anew in the place of the row whose digest is ?7; returns no row where that does not stand any
-- more: the thread was deleted, or somebody else was faster. Locks the key's row.
update stepwell.keys set name = $2, key_id = $3, wrapped = $4, created_at = $5, digest = $6
where thread_id = $1 and digest = $7
returning digest
