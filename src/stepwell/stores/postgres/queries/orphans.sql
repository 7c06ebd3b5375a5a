-- Rows that belong to no thread: table name, and the thread id they carry. Events also where no run and no first event
-- tells that the thread has them. Locks nothing.
select distinct 'checkpoints', thread_id from stepwell.checkpoints as r
where not exists (select from stepwell.threads as o where o.thread_id = r.thread_id)
union all
select distinct 'records', thread_id from stepwell.records as r
where not exists (select from stepwell.threads as o where o.thread_id = r.thread_id)
union all
select distinct 'runs', thread_id from stepwell.runs as r
where not exists (select from stepwell.threads as o where o.thread_id = r.thread_id)
union all
select distinct 'events', thread_id from stepwell.events as r
where not exists (select from stepwell.runs as o where o.run_id = r.run_id)
  and (
    not exists (select from stepwell.threads as o where o.thread_id = r.thread_id)
    or not exists (
      select from stepwell.events as o where o.run_id = r.run_id and o.ordinal = 1 and o.thread_id = r.thread_id
    )
  )
union all
select distinct 'lineages', thread_id from stepwell.lineages as r
where not exists (select from stepwell.threads as o where o.thread_id = r.thread_id)
union all
select distinct 'blobs', thread_id from stepwell.blobs as r
where not exists (select from stepwell.threads as o where o.thread_id = r.thread_id)
union all
select distinct 'effects', thread_id from stepwell.effects as r
where not exists (select from stepwell.threads as o where o.thread_id = r.thread_id)
union all
select distinct 'anchors', thread_id from stepwell.anchors as r
where not exists (select from stepwell.threads as o where o.thread_id = r.thread_id)
