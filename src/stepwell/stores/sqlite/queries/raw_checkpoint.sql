-- The checkpoint at a seq, however it is damaged. Text comes as bytes.
-- What is not of its column's type, and might not even be fetched, comes as null (-1 where null is a value). Locks nothing.
select
  iif(typeof(thread_id) = 'text', cast(thread_id as blob), null),
  iif(typeof(namespace) = 'text', cast(namespace as blob), null),
  iif(typeof(lineage) = 'integer', lineage, null),
  iif(typeof(seq) = 'integer', seq, null),
  iif(typeof(checkpoint_id) = 'text', cast(checkpoint_id as blob), null),
  iif(typeof(parent_seq) in ('integer', 'null'), parent_seq, -1),
  iif(typeof(parent_digest) = 'blob', parent_digest, null),
  iif(typeof(step) = 'integer', step, null),
  iif(typeof(source) = 'text', cast(source as blob), null),
  iif(typeof(run_id) = 'text', cast(run_id as blob), null),
  iif(typeof(graph_id) = 'text', cast(graph_id as blob), null),
  iif(typeof(version) = 'text', cast(version as blob), null),
  iif(typeof(fingerprint) = 'text', cast(fingerprint as blob), null),
  iif(typeof(created_at) = 'integer', created_at, null),
  iif(typeof(metadata) = 'text', cast(metadata as blob), null),
  iif(typeof(body) = 'blob', body, null),
  iif(typeof(digest) = 'blob', digest, null)
from checkpoints
where thread_id = cast(:thread_id as text)
  and seq = :seq
