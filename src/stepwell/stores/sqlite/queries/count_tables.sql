-- How many tables a database has, to tell an empty file from another program's. Locks nothing.
select count(*) from sqlite_schema
