-- One run. Locks nothing.
select run_id, thread_id, lineage, status, durability, input, input_digest, base_seq, started_at, finished_at, recoveries,
  progress_seq, checkpoint_id, error, kind, takeovers, events, epoch, digest
from stepwell.runs
where run_id = %(run_id)s
