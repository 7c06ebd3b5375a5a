-- Delete one effect's row, whatever is wrong with it; key and thread id are bytes. Takes no lock of its own: the thread row
-- was updated first, in the same transaction.
delete from effects where key = cast(?1 as text) and thread_id = cast(?2 as text)
