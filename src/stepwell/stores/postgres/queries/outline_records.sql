-- A page of a thread's records behind a seq, without their bodies, in seq order. Locks nothing.
select seq, base_seq, kind, run_id from stepwell.records
where thread_id = %(thread_id)s and seq > %(after)s
order by seq
limit %(max_rows)s
