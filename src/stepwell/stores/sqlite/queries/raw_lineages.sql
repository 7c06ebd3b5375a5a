-- Every row of lineages of one thread, whose id is bytes too: none is skipped, however it is damaged. Text comes as bytes.
-- What is not of its column's type, and might not even be fetched, comes as null (-1 where null is a value). Locks nothing.
select
  iif(typeof(thread_id) = 'text', cast(thread_id as blob), null),
  iif(typeof(lineage) = 'integer', lineage, null),
  iif(typeof(parent_lineage) in ('integer', 'null'), parent_lineage, -1),
  iif(typeof(parent_seq) in ('integer', 'null'), parent_seq, -1),
  iif(typeof(head_seq) = 'integer', head_seq, null),
  iif(typeof(digest) = 'blob', digest, null)
from lineages
where thread_id = cast(:thread_id as text)
order by lineage
