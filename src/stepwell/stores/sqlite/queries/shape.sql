-- The shape of the graphs that have a fingerprint, as bytes. Locks nothing.
select cast(shape as blob) from shapes where fingerprint = :fingerprint
