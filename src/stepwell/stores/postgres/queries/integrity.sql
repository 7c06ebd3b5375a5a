-- What PostgreSQL itself knows to be wrong with the schema: indexes whose making was not finished, constraints that were
-- never checked; one row "ok" where nothing is. Locks nothing.
select coalesce(
  (select string_agg(found.told, chr(10) order by found.told) from (
    select 'the index ' || c.relname || ' is not valid' as told
    from pg_catalog.pg_index as i
    join pg_catalog.pg_class as c on c.oid = i.indexrelid
    where c.relnamespace = (select relnamespace from pg_catalog.pg_class where oid = 'stepwell.threads'::regclass)
      and not i.indisvalid
    union all
    select 'the constraint ' || conname || ' is not validated'
    from pg_catalog.pg_constraint
    where connamespace = (select relnamespace from pg_catalog.pg_class where oid = 'stepwell.threads'::regclass)
      and not convalidated
  ) as found),
  'ok'
)
