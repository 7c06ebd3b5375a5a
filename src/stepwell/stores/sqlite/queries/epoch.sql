-- The epoch of a thread, whatever else its row holds. Locks nothing.
select epoch from threads
where thread_id = :thread_id and status <> 'deleted'
