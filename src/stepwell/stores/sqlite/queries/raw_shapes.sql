-- Every shape, to check it. Text comes as bytes, so that none is skipped, however it is damaged. Locks nothing.
select cast(fingerprint as blob), cast(shape as blob) from shapes order by fingerprint
