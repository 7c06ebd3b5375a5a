-- Delete the events of a thread, also of a run whose row is missing: the run is known by the first of its events, or by
-- what it wrote. Takes no lock of its own: the thread row was made a tombstone first, in the same transaction, and the
-- other rows are still there.
delete from events where run_id in (
  select run_id from runs where thread_id = :thread_id
  union all
  select run_id from events where thread_id = :thread_id and ordinal = 1
  union all
  select run_id from checkpoints as r
  where thread_id = :thread_id and not exists (select 1 from runs as o where o.run_id = r.run_id)
  union all
  select run_id from records as r
  where thread_id = :thread_id and not exists (select 1 from runs as o where o.run_id = r.run_id)
)
