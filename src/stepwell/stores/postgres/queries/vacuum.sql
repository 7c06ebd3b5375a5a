-- Make the room of what was deleted usable again, and give back what is free at the end of a table. Locks nobody out.
vacuum (analyze)
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
