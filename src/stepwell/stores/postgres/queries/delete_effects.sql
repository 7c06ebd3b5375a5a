-- Delete the effects of a thread but those of the scope "global", which are not the thread's. Takes no lock of its own: the
-- thread row was made a tombstone first, in the same transaction.
delete from stepwell.effects where thread_id = %(thread_id)s and scope <> 'global'
