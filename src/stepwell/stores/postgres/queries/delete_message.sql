-- Delete one message, whatever is wrong with it; thread and message id are bytes. Takes no lock of its own: the thread row
-- was updated first, in the same transaction.
delete from stepwell.inbox where thread_id = convert_from($1, 'UTF8') and message_id = convert_from($2, 'UTF8')
