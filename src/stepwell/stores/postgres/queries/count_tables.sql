-- How many tables a schema has, and whether one of them is Stepwell's own `meta`. Locks nothing.
select count(*), coalesce(bool_or(c.relname = 'meta'), false)
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relkind in ('r', 'p', 'v', 'm', 'f')
