-- Extend a lease that is still this run's, in this process. Expired but not taken is still its own. The row has been
-- locked since it was read to take the digest over.
update stepwell.threads set lease_until = %(lease_until)s, digest = %(digest)s
where thread_id = %(thread_id)s and epoch = %(epoch)s and run_id = %(run_id)s and holder = %(holder)s
