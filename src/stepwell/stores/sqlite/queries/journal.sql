-- What a thread's journal holds of checkpoints that are kept, newest first by seq: all of it, what stands on one checkpoint, or what the lineages of :line
-- hold, each up to a seq (a JSON array of pairs). The kinds are those of the index. Bounds that are null, and :max_rows -1,
-- are none. Locks nothing.
select thread_id, namespace, lineage, seq, base_seq, base_digest, ordinal, kind, task_id, run_id, created_at, body, digest
from records
where thread_id = :thread_id
  and kind in ('step', 'intent', 'receipt', 'effect_failed', 'doubt', 'resolved', 'decision', 'arrived')
  and seq < coalesce(:before_seq, 9223372036854775807)
  and (:base_seq is null or base_seq = :base_seq)
  and (:line is null or exists (
    select 1 from json_each(:line) where value ->> 0 = records.lineage and records.seq <= value ->> 1
  ))
  and not exists (select 1 from anchors where anchors.thread_id = :thread_id and anchors.seq = records.base_seq)
order by seq desc
limit :max_rows
