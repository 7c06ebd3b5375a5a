-- Rows that belong to no thread, events to no run: table name, and the thread id they carry, as bytes. Locks nothing.
select distinct 'checkpoints', cast(thread_id as blob) from checkpoints
where thread_id not in (select thread_id from threads)
union all
select distinct 'records', cast(thread_id as blob) from records
where thread_id not in (select thread_id from threads)
union all
select distinct 'runs', cast(thread_id as blob) from runs
where thread_id not in (select thread_id from threads)
union all
select distinct 'events', cast(thread_id as blob) from events
where run_id not in (select run_id from runs)
union all
select distinct 'lineages', cast(thread_id as blob) from lineages
where thread_id not in (select thread_id from threads)
union all
select distinct 'effects', cast(thread_id as blob) from effects
where thread_id not in (select thread_id from threads)
