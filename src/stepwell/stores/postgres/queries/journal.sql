-- What a thread's journal holds of checkpoints that are kept, newest first by seq: all of it, what stands on one checkpoint, or what the lineages of line
-- hold, each up to a seq (a JSON array of pairs). The kinds are those of the index. Bounds that are null, and max_rows -1,
-- are none. Locks nothing.
select thread_id, namespace, lineage, seq, base_seq, base_digest, ordinal, kind, task_id, run_id, created_at, body, digest
from stepwell.records
where thread_id = %(thread_id)s
  and kind in ('step', 'intent', 'receipt', 'effect_failed', 'doubt', 'resolved', 'decision', 'arrived')
  and seq < coalesce(%(before_seq)s::bigint, 9223372036854775807)
  and (%(base_seq)s::bigint is null or base_seq = %(base_seq)s::bigint)
  and (%(line)s::json is null or exists (
    select from json_array_elements(%(line)s::json) as part
    where (part ->> 0)::bigint = records.lineage and records.seq <= (part ->> 1)::bigint
  ))
  and not exists (
    select from stepwell.anchors as a where a.thread_id = %(thread_id)s and a.seq = records.base_seq
  )
order by seq desc
limit nullif(%(max_rows)s::bigint, -1)
