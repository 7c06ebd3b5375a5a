-- The place before the one that the next item gets, which is nobody else's from here on. Locks nothing: places may have
-- gaps, and are given in the order in which they are asked for.
select nextval('stepwell.item_ordinals') - 1
