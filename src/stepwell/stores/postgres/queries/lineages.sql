-- The lineages of a thread that has branched, in order of their numbers; none where it never has. Locks nothing.
select thread_id, lineage, parent_lineage, parent_seq, head_seq, digest
from stepwell.lineages
where thread_id = %(thread_id)s
order by lineage
