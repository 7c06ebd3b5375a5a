-- Rows that belong to no thread: table name, and the thread id they carry, both as bytes. Events also where no run and no
-- first event tells that the thread has them. Locks nothing.
select distinct cast('checkpoints' as blob), cast(thread_id as blob) from checkpoints
where thread_id not in (select thread_id from threads)
union all
select distinct cast('records' as blob), cast(thread_id as blob) from records
where thread_id not in (select thread_id from threads)
union all
select distinct cast('runs' as blob), cast(thread_id as blob) from runs
where thread_id not in (select thread_id from threads)
union all
select distinct cast('events' as blob), cast(thread_id as blob) from events as e
where run_id not in (select run_id from runs)
  and (
    thread_id not in (select thread_id from threads)
    or not exists (select 1 from events where run_id = e.run_id and ordinal = 1 and thread_id = e.thread_id)
  )
union all
select distinct cast('lineages' as blob), cast(thread_id as blob) from lineages
where thread_id not in (select thread_id from threads)
union all
select distinct cast('blobs' as blob), cast(thread_id as blob) from blobs
where thread_id not in (select thread_id from threads)
union all
select distinct cast('effects' as blob), cast(thread_id as blob) from effects
where thread_id not in (select thread_id from threads)
union all
select distinct cast('anchors' as blob), cast(thread_id as blob) from anchors
where thread_id not in (select thread_id from threads)
