-- The runs of a thread, last admitted first; :before null and :max_rows -1 mean no bound. A run that is not the thread's
-- bounds everything: nothing comes before it. Locks nothing.
select run_id, thread_id, lineage, status, durability, input, input_digest, base_seq, started_at, finished_at, recoveries,
  progress_seq, checkpoint_id, error, kind, takeovers, events, epoch, digest
from runs
where thread_id = :thread_id
  and (:before is null or epoch < (select epoch from runs where run_id = :before and thread_id = :thread_id))
order by epoch desc
limit :max_rows
