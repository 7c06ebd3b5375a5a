-- Every row of runs of one thread, to check it. Locks nothing.
select run_id, thread_id, lineage, status, durability, input, input_digest, base_seq, started_at, finished_at,
  recoveries, progress_seq, checkpoint_id, error, kind, takeovers, events, epoch, digest
from stepwell.runs
where thread_id = %(thread_id)s
order by run_id
