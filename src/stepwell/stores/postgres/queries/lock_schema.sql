-- Let one process at a time change a schema: whoever comes second waits here until the first has committed. Takes an
-- advisory lock that ends with the transaction.
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('stepwell: ' || %(schema)s::text, 0))
