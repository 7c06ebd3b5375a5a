-- Every row of records of one thread, whose id is bytes too; text as bytes, so that damaged text is found and not skipped. Locks nothing.
select cast(thread_id as blob), cast(namespace as blob), lineage, seq, base_seq, base_digest, ordinal, cast(kind as blob),
  cast(task_id as blob), cast(run_id as blob), created_at, body, digest
from records
where thread_id = cast(:thread_id as text)
order by seq
