-- The commits of many threads at once, each under its own fence: the head of a thread moves while the writer's epoch, run,
-- process and head are still the thread's, and what the commit brings depends on that. Arrays of rows: $1 the threads as
-- they shall be, $2 and $3 the head and run that each is to have now, $4 the process; $5 checkpoints, $6 records, $7 runs.
-- Returns the threads whose rows were free, and whether the fence let them pass. Locks the thread rows first, in the order
-- of their ids, and passes over those that another transaction has. A run id that belongs to another thread is an error,
-- since its thread would become null.
with member as materialized (
  select * from rows from (unnest($1::stepwell.threads[]), unnest($2::bigint[]), unnest($3::text[]))
    as given (thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at,
      digest, seen_seq, writer)
),
free as materialized (
  select thread_id from stepwell.threads
  where thread_id in (select thread_id from member)
  order by thread_id
  for update skip locked
),
fenced as (
  update stepwell.threads as t set
    status = m.status, run_id = m.run_id, holder = m.holder, lease_until = m.lease_until, head_seq = m.head_seq,
    head_digest = m.head_digest, lineages = m.lineages, updated_at = m.updated_at, digest = m.digest
  from member as m join free on free.thread_id = m.thread_id
  where t.thread_id = m.thread_id and t.epoch = m.epoch and t.head_seq = m.seen_seq and t.run_id = m.writer
    and t.holder = $4 and t.graph_id = m.graph_id
  returning t.thread_id
),
checkpoint as (
  insert into stepwell.checkpoints
  select c.* from unnest($5::stepwell.checkpoints[]) as c where c.thread_id in (select thread_id from fenced)
),
record as (
  insert into stepwell.records
  select r.* from unnest($6::stepwell.records[]) as r where r.thread_id in (select thread_id from fenced)
),
run as (
  insert into stepwell.runs
  select r.* from unnest($7::stepwell.runs[]) as r where r.thread_id in (select thread_id from fenced)
  on conflict (run_id) do update set
    thread_id = case when runs.thread_id = excluded.thread_id then runs.thread_id end,
    lineage = excluded.lineage, status = excluded.status, durability = excluded.durability, input = excluded.input,
    input_digest = excluded.input_digest, base_seq = excluded.base_seq, started_at = excluded.started_at,
    finished_at = excluded.finished_at, recoveries = excluded.recoveries, progress_seq = excluded.progress_seq,
    checkpoint_id = excluded.checkpoint_id, error = excluded.error, kind = excluded.kind, takeovers = excluded.takeovers,
    events = excluded.events, epoch = excluded.epoch, digest = excluded.digest
)
select free.thread_id, fenced.thread_id is not null, extract(epoch from clock_timestamp())::double precision
from free left join fenced on fenced.thread_id = free.thread_id
