-- Add an event. Takes no lock of its own: the thread row was updated first, in the same transaction.
insert into stepwell.events (run_id, thread_id, ordinal, kind, created_at, previous_digest, body, digest)
values ($1, $2, $3, $4, $5, $6, $7, $8)
