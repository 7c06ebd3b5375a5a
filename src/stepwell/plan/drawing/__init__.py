"""A graph as it can be looked at: nodes and edges, as Mermaid, as text and as JSON.

`outline.py` reads it off the graph as written, `graph.py` is the object `get_graph()` returns; `mermaid.py`,
`layout.py` and `ascii.py` draw it. Nothing here runs user code or needs a dependency.
"""

from stepwell.plan.drawing.graph import DrawnEdge, DrawnGraph, DrawnNode

__all__ = ["DrawnEdge", "DrawnGraph", "DrawnNode"]
