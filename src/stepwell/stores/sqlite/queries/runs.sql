-- The runs of a thread, last admitted first. Locks nothing.
select run_id, thread_id, lineage, status, durability, input, input_digest, base_seq, started_at, finished_at, recoveries,
  progress_seq, checkpoint_id, error, epoch, digest
from runs
where thread_id = :thread_id
order by epoch desc
