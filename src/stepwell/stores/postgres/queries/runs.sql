-- The runs of a thread, last admitted first; before null and max_rows -1 mean no bound. A run that is not the thread's
-- bounds everything: nothing comes before it. Locks nothing.
select run_id, thread_id, lineage, status, durability, input, input_digest, base_seq, started_at, finished_at, recoveries,
  progress_seq, checkpoint_id, error, kind, takeovers, events, epoch, digest
from stepwell.runs
where thread_id = %(thread_id)s
  and (%(before)s::text is null or epoch < (select epoch from stepwell.runs where run_id = %(before)s and thread_id = %(thread_id)s))
order by epoch desc
limit nullif(%(max_rows)s::bigint, -1)
