-- The claims of many threads at once: each opens its thread or takes it with the next epoch, and what it brings depends on
-- that. Arrays of rows: $1 the threads as they shall be, $2 the head that each was seen at, -1 where there was no such thread;
-- $3 the threads whose holder is known to be dead (it cannot have changed while the epoch has not); $4 what time it is, null
-- for the database's clock; $5 checkpoints, $6 records, $7 runs, $8 and $9 shapes. Returns the threads that were taken. Any
-- other is not as it was seen, is leased, or its row was locked: existing rows are locked in the order of their ids, and one
-- that another transaction has is passed over. Threads are opened in that order too; who is opening one of them at this
-- moment is waited for, half a second at most. A run id that belongs to another thread is an error, since its thread would
-- become null.
with patience as materialized (
  select set_config('lock_timeout', '500', true), set_config('idle_in_transaction_session_timeout', '30000', true)
),
claim as materialized (
  select given.* from patience cross join rows from (unnest($1::stepwell.threads[]), unnest($2::bigint[]))
    as given (thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at,
      digest, seen_seq)
),
opened as (
  insert into stepwell.threads
  select thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at, digest
  from claim where seen_seq = -1
  order by thread_id
  on conflict (thread_id) do nothing
  returning thread_id
),
free as materialized (
  select thread_id from stepwell.threads
  where thread_id in (select thread_id from claim where seen_seq <> -1)
  order by thread_id
  for update skip locked
),
retaken as (
  update stepwell.threads as t set
    graph_id = c.graph_id, status = c.status, epoch = c.epoch, run_id = c.run_id, holder = c.holder,
    lease_until = c.lease_until, head_seq = c.head_seq, head_digest = c.head_digest, lineages = c.lineages,
    updated_at = c.updated_at, digest = c.digest
  from claim as c join free on free.thread_id = c.thread_id
  where t.thread_id = c.thread_id and t.epoch = c.epoch - 1 and t.head_seq = c.seen_seq
    and (t.run_id = '' or t.lease_until <= coalesce($4::double precision, extract(epoch from clock_timestamp()))
      or t.thread_id = any($3::text[]))
  returning t.thread_id
),
taken as materialized (
  select thread_id from opened union all select thread_id from retaken
),
checkpoint as (
  insert into stepwell.checkpoints
  select c.* from unnest($5::stepwell.checkpoints[]) as c where c.thread_id in (select thread_id from taken)
),
record as (
  insert into stepwell.records
  select r.* from unnest($6::stepwell.records[]) as r where r.thread_id in (select thread_id from taken)
),
run as (
  insert into stepwell.runs
  select r.* from unnest($7::stepwell.runs[]) as r where r.thread_id in (select thread_id from taken)
  on conflict (run_id) do update set
    thread_id = case when runs.thread_id = excluded.thread_id then runs.thread_id end,
    lineage = excluded.lineage, status = excluded.status, durability = excluded.durability, input = excluded.input,
    input_digest = excluded.input_digest, base_seq = excluded.base_seq, started_at = excluded.started_at,
    finished_at = excluded.finished_at, recoveries = excluded.recoveries, progress_seq = excluded.progress_seq,
    checkpoint_id = excluded.checkpoint_id, error = excluded.error, kind = excluded.kind, takeovers = excluded.takeovers,
    events = excluded.events, epoch = excluded.epoch, digest = excluded.digest
),
shape as (
  insert into stepwell.shapes (fingerprint, shape)
  select s.fingerprint, s.shape from unnest($8::text[], $9::text[]) as s (fingerprint, shape)
  where exists (select from taken)
  order by s.fingerprint
  on conflict (fingerprint) do nothing
)
select thread_id, true, extract(epoch from clock_timestamp())::double precision from taken
