-- Delete one effect's row, whatever is wrong with it; key and thread id are bytes. Takes no lock of its own: the thread row
-- was updated first, in the same transaction.
delete from stepwell.effects where key = convert_from($1, 'UTF8') and thread_id = convert_from($2, 'UTF8')
