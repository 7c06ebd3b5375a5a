-- Fold the log into the database and make it empty, as far as nobody reads it. Locks out whoever writes.
pragma wal_checkpoint(truncate)
