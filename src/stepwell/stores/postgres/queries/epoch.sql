-- The epoch of a thread that is about to be deleted, whatever else its row holds. Locks the thread row.
select epoch from stepwell.threads
where thread_id = %(thread_id)s and status <> 'deleted'
for update
