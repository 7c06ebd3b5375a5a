-- What is recorded of effects on the bases from one on, up to another: all lineages, base by base. The first is where a
-- lineage stood at :since_seq, edits passed over, since what stays over an edit is recorded before it. Locks nothing.
select thread_id, namespace, lineage, seq, base_seq, base_digest, ordinal, kind, task_id, run_id, created_at, body, digest
from records
where thread_id = :thread_id
  and base_seq >= coalesce(
    (
      select seq from checkpoints
      where thread_id = :thread_id and seq <= :since_seq and lineage = :lineage and source not in ('update', 'fork')
      order by seq desc
      limit 1
    ),
    0
  )
  and base_seq <= :until_seq
  and kind in ('intent', 'receipt', 'effect_failed', 'doubt', 'resolved')
order by base_seq, ordinal
