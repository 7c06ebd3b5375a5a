-- Every row of runs of one thread, whose id is bytes too; text as bytes, so that damaged text is found and not skipped. Locks nothing.
select cast(run_id as blob), cast(thread_id as blob), lineage, cast(status as blob), cast(durability as blob), input,
  input_digest, base_seq, started_at, finished_at, recoveries, progress_seq, cast(checkpoint_id as blob),
  cast(error as blob), epoch, digest
from runs
where thread_id = cast(:thread_id as text)
order by run_id
