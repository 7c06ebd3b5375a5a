-- Let nobody else into what these names stand for until the transaction ends. Locks them in one order for everybody, so
-- that no two transactions wait for each other.
select pg_advisory_xact_lock(hashtextextended(named.name, 0))
from (select distinct name from unnest(%(names)s::text[]) as given (name) order by name) as named
