"""How threads are kept small, thrown away, weighed and moved: pruning, sweeping, figures, files of one thread each."""
