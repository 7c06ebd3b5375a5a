-- Every shape, to check it. Locks nothing.
select fingerprint, shape from stepwell.shapes order by fingerprint
