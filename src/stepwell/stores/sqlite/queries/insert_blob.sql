-- Keep a value of a thread, unless it is kept already: equal names mean equal values. Takes no lock of its own: the thread
-- row was updated first, in the same transaction.
insert or ignore into blobs (thread_id, name, body, digest) values (?1, ?2, ?3, ?4)
