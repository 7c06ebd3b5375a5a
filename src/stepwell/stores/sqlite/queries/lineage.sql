-- One lineage of a thread that has branched. Locks nothing.
select thread_id, lineage, parent_lineage, parent_seq, head_seq, digest
from lineages
where thread_id = :thread_id and lineage = :lineage
