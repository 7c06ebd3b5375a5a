-- Keep the shape of a graph, unless it is kept already: equal fingerprints mean equal shapes. Takes no lock of its own:
-- the thread row was updated first, in the same transaction.
insert into stepwell.shapes (fingerprint, shape) values ($1, $2)
on conflict (fingerprint) do nothing
