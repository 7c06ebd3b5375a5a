-- A page of a thread's checkpoints behind a seq, without their bodies, in seq order. Locks nothing.
select seq, namespace, lineage, parent_seq, created_at, run_id, parent_digest, digest from checkpoints
where thread_id = :thread_id and seq > :after
order by seq
limit :max_rows
