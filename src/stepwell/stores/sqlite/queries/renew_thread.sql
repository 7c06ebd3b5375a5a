-- Extend a lease that is still this run's, in this process. Expired but not taken is still its own. The caller holds
-- the write lock since it read the row that the digest is taken over.
update threads set lease_until = :lease_until, digest = :digest
where thread_id = :thread_id and epoch = :epoch and run_id = :run_id and holder = :holder
