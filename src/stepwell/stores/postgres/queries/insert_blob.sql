-- Keep a value of a thread, unless it is kept already: equal names mean equal values. Takes no lock of its own: the thread
-- row was updated first, in the same transaction.
insert into stepwell.blobs (thread_id, name, body, digest) values ($1, $2, $3, $4)
on conflict (thread_id, name) do nothing
