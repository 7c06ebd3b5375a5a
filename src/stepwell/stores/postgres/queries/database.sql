-- What a database must be asked once: what its tables' rows are called as types, for arrays of them; what time it is, by the
-- clock that leases run by; and by what it is known among all databases. Locks nothing.
select 'stepwell.threads'::regtype::oid, 'stepwell.checkpoints'::regtype::oid, 'stepwell.records'::regtype::oid,
  'stepwell.runs'::regtype::oid, extract(epoch from clock_timestamp())::double precision, current_database(),
  (select value from stepwell.meta where name = 'database')
