-- Every row of threads of all threads; text as bytes, so that damaged text is found and not skipped. Locks nothing.
select cast(thread_id as blob), cast(graph_id as blob), cast(status as blob), epoch, cast(run_id as blob),
  cast(holder as blob), lease_until, head_seq, head_digest, lineages, updated_at, digest
from threads
order by thread_id
