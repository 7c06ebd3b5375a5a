-- Write an effect's row as it shall be. One of the scope "global" takes the place of whatever thread's row stands under
-- its key. The key was locked before its rows were looked at, and the thread row before that, in the same transaction.
with gone as (
  delete from stepwell.effects where $3 = 'global' and scope = 'global' and key = $1 and thread_id <> $2
  returning key
)
insert into stepwell.effects
  (key, thread_id, scope, lineage, position, node, activation, call_id, name, status, epoch, run_id, fingerprint,
  seq, attempts, started_at, finished_at, body, digest)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19
from (select count(*) from gone) as first
on conflict (key, thread_id) do update set
  scope = excluded.scope, lineage = excluded.lineage, position = excluded.position, node = excluded.node,
  activation = excluded.activation, call_id = excluded.call_id, name = excluded.name, status = excluded.status,
  epoch = excluded.epoch, run_id = excluded.run_id, fingerprint = excluded.fingerprint, seq = excluded.seq,
  attempts = excluded.attempts, started_at = excluded.started_at, finished_at = excluded.finished_at,
  body = excluded.body, digest = excluded.digest
