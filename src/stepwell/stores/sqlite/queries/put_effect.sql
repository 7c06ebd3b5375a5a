-- Write an effect's row as it shall be. One of the scope "global" takes the place of whatever thread's row stands under
-- its key. Takes no lock of its own: the thread row was updated first, in the same transaction. Numbered parameters, as in
-- the fence.
insert or replace into effects
  (key, thread_id, scope, lineage, position, node, activation, call_id, name, status, epoch, run_id, fingerprint,
  seq, attempts, started_at, finished_at, body, digest)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
