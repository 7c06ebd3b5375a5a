"""Release notes from a git history: fan out over the commits, draft, ask a human, publish once.

The graph that `stepwell demo` runs and kills; its nodes are in `stepwell/demo/release_notes.py`.
"""

from stepwell.demo.release_notes import graph

__all__ = ["graph"]
