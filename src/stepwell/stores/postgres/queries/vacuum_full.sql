-- Write the tables anew without what was deleted. Locks out whoever reads or writes a table until it is done.
vacuum (full, analyze)
  stepwell.threads,
  stepwell.runs,
  stepwell.checkpoints,
  stepwell.lineages,
  stepwell.anchors,
  stepwell.records,
  stepwell.blobs,
  stepwell.effects,
  stepwell.events,
  stepwell.inbox,
  stepwell.shapes,
  stepwell.items,
  stepwell.keys
