-- Whether a schema is there. Locks nothing.
select 1 from pg_catalog.pg_namespace where nspname = %(schema)s
