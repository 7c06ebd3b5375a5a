-- The shape of the graphs that have a fingerprint. Locks nothing.
select shape from stepwell.shapes where fingerprint = %(fingerprint)s
