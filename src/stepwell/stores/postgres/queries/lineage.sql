-- One lineage of a thread that has branched. Locks nothing.
select thread_id, lineage, parent_lineage, parent_seq, head_seq, digest
from stepwell.lineages
where thread_id = %(thread_id)s and lineage = %(lineage)s
