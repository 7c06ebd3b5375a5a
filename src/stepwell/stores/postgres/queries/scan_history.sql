-- What a filter looks at of the checkpoints that `history.sql` lists, in its order, with nothing else of them. `needles` are
-- texts that the metadata holds wherever it can match: it narrows what is looked at, what matches is decided above. Locks
-- nothing.
select seq, source, step, run_id, lineage, metadata
from stepwell.checkpoints
where thread_id = %(thread_id)s
  and namespace = %(namespace)s
  and seq < coalesce(%(before_seq)s::bigint, 9223372036854775807)
  and seq >= coalesce(%(since_seq)s::bigint, 0)
  and (select coalesce(bool_and(strpos(metadata, needle) > 0), true) from unnest(%(needles)s::text[]) as needle)
  and not exists (select from stepwell.anchors as a where a.thread_id = checkpoints.thread_id and a.seq = checkpoints.seq)
order by seq desc
