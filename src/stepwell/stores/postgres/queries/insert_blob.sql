-- Keep a value of a thread. Equal names mean equal values: one that is there is left, unless its bytes are other ones, as where
-- the row is damaged. Takes no lock of its own: the thread row was updated first, in the same transaction.
insert into stepwell.blobs (thread_id, name, body, digest) values ($1, $2, $3, $4)
on conflict (thread_id, name) do update set body = excluded.body, digest = excluded.digest
where blobs.body <> excluded.body or blobs.digest <> excluded.digest
