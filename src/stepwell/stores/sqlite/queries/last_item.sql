-- The place of the item that was made last. Read inside a writing transaction, whose lock keeps it the last.
select max(ordinal) from items
