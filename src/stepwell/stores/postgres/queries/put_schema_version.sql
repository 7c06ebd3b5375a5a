-- Note the version a migration leads to, in its transaction. Locks the row.
insert into stepwell.meta (name, value) values ('schema_version', %(version)s)
on conflict (name) do update set value = excluded.value
