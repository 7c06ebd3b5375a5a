-- Bytes of the database, and those of its free pages. Locks nothing.
select page_count * page_size, freelist_count * page_size
from pragma_page_count, pragma_page_size, pragma_freelist_count
