-- A page of a thread's records behind a seq, without their bodies, in seq order. Locks nothing.
select seq, base_seq, kind, run_id from records
where thread_id = :thread_id and seq > :after
order by seq
limit :max_rows
