-- Delete the events of a thread, also of a run whose row is missing: the run is known by the first of its events, or by
-- what it wrote. Takes no lock of its own: the thread row was made a tombstone first, in the same transaction, and the
-- other rows are still there.
delete from stepwell.events where run_id in (
  select run_id from stepwell.runs where thread_id = %(thread_id)s
  union all
  select run_id from stepwell.events where thread_id = %(thread_id)s and ordinal = 1
  union all
  select run_id from stepwell.checkpoints as r
  where thread_id = %(thread_id)s and not exists (select from stepwell.runs as o where o.run_id = r.run_id)
  union all
  select run_id from stepwell.records as r
  where thread_id = %(thread_id)s and not exists (select from stepwell.runs as o where o.run_id = r.run_id)
)
