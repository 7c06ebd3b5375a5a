-- The row of a thread, if it has one, with what its end is checked by: the highest seq that any row of the thread has (0 where
-- there is none), and the digests of the checkpoint and of the record that stand at its head. A record whose base is missing, and
-- was not pruned, is none: what the thread stands on is lost. Neither is one of the whole thread, which has no base: what stands
-- before it is to be looked for. Last, the seq of the newest checkpoint where it says that it is a child's. One row. Locks nothing.
select t.thread_id, t.graph_id, t.status, t.epoch, t.run_id, t.holder, t.lease_until, t.head_seq, t.head_digest, t.lineages,
  t.updated_at, t.digest,
  greatest(
    coalesce((select max(seq) from stepwell.checkpoints where thread_id = %(thread_id)s), 0),
    coalesce((select max(seq) from stepwell.records where thread_id = %(thread_id)s), 0)
  ),
  (select digest from stepwell.checkpoints where thread_id = %(thread_id)s and seq = t.head_seq),
  (
    select digest from stepwell.records as record where thread_id = %(thread_id)s and seq = t.head_seq and base_seq > 0 and (
      exists (select 1 from stepwell.checkpoints where thread_id = %(thread_id)s and seq = record.base_seq)
      or exists (select 1 from stepwell.anchors where thread_id = %(thread_id)s and seq >= record.base_seq)
    )
  ),
  (
    select case when namespace = '' then null else seq end
    from stepwell.checkpoints as newest
    where thread_id = %(thread_id)s
    order by newest.seq desc
    limit 1
  )
from (select 1) as one left join stepwell.threads as t on t.thread_id = %(thread_id)s
