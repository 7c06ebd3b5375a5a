-- Note where a lineage begins, or where it ends for now. Takes no lock of its own: the thread row was updated first, in
-- the same transaction.
insert into stepwell.lineages (thread_id, lineage, parent_lineage, parent_seq, head_seq, digest)
values ($1, $2, $3, $4, $5, $6)
on conflict (thread_id, lineage) do update set head_seq = $5, digest = $6
