-- The version of the schema. Locks nothing.
select value from stepwell.meta where name = 'schema_version'
