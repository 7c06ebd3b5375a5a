"""Writing without running: edits, forks, what a retry discards, and where a copied thread comes from."""
