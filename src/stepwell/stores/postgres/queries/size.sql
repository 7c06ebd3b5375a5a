-- Bytes of the tables with their indexes. Locks nothing.
select sum(pg_total_relation_size(t)), null from (values
  ('stepwell.threads'::regclass),
  ('stepwell.runs'::regclass),
  ('stepwell.checkpoints'::regclass),
  ('stepwell.lineages'::regclass),
  ('stepwell.anchors'::regclass),
  ('stepwell.records'::regclass),
  ('stepwell.blobs'::regclass),
  ('stepwell.effects'::regclass),
  ('stepwell.events'::regclass),
  ('stepwell.inbox'::regclass),
  ('stepwell.shapes'::regclass),
  ('stepwell.items'::regclass),
  ('stepwell.keys'::regclass)
) as tables (t)
