-- Delete one message, whatever is wrong with it; thread and message id are bytes. Takes no lock of its own: the thread row
-- was updated first, in the same transaction.
delete from inbox where thread_id = cast(?1 as text) and message_id = cast(?2 as text)
