-- Every row of checkpoints of one thread, whose id is bytes too; text as bytes, so that damaged text is found and not skipped. Locks nothing.
select cast(thread_id as blob), cast(namespace as blob), lineage, seq, cast(checkpoint_id as blob), parent_seq,
  parent_digest, step, cast(source as blob), cast(run_id as blob), cast(graph_id as blob), cast(version as blob),
  cast(fingerprint as blob), created_at, cast(metadata as blob), body, digest
from checkpoints
where thread_id = cast(:thread_id as text)
order by seq
