"""The schema, one file a version. Each opens with prose; each runs once, in one transaction."""
