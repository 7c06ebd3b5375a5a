-- What SQLite itself finds wrong with pages, indexes and column types; one row "ok" where nothing is. Locks nothing.
pragma integrity_check
