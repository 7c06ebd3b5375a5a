-- Every row of lineages of one thread, to check it. Locks nothing.
select thread_id, lineage, parent_lineage, parent_seq, head_seq, digest
from stepwell.lineages
where thread_id = %(thread_id)s
order by lineage
