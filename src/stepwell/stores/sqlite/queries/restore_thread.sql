-- Begin a thread that comes from elsewhere, or one that was deleted here. Changes no row where there is a thread. Locks the
-- thread row first.
insert into threads
  (thread_id, graph_id, status, epoch, run_id, holder, lease_until, head_seq, head_digest, lineages, updated_at, digest)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
on conflict (thread_id) do update set
  graph_id = ?2, status = ?3, epoch = ?4, run_id = ?5, holder = ?6, lease_until = ?7, head_seq = ?8, head_digest = ?9,
  lineages = ?10, updated_at = ?11, digest = ?12
where threads.status = 'deleted' and threads.epoch < ?4
