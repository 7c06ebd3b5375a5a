-- What SQLite itself finds wrong with pages, indexes and column types, as bytes; one row "ok" where nothing is. The
-- names it tells come from the schema, and may be damaged too. Locks nothing.
select cast(integrity_check as blob) from pragma_integrity_check
