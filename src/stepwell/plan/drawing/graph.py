"""The drawable graph: nodes by id and a list of edges, with the names langchain-core's `Graph` gives them.

It is made anew by each `get_graph()`, so whoever has one may change it before drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from stepwell.graph.types import END, START


class DrawnNode(NamedTuple):
    """A node: its function or graph in `data`, and what is shown beside its name in `metadata`."""

    id: str
    name: str
    data: Any = None
    metadata: Mapping[str, Any] | None = None


class DrawnEdge(NamedTuple):
    """An edge: `data` is its label; a conditional one is taken or not, as a router or a node decides."""

    source: str
    target: str
    data: str | None = None
    conditional: bool = False


@dataclass(slots=True)
class DrawnGraph:
    """What `get_graph()` returns."""

    nodes: dict[str, DrawnNode]
    edges: list[DrawnEdge]

    def draw_mermaid(
        self,
        *,
        with_styles: bool = True,
        curve_style: Any = "linear",
        node_colors: Any = None,
        wrap_label_n_words: int = 9,
        frontmatter_config: Mapping[str, Any] | None = None,
    ) -> str:
        """Return Mermaid source: paste it into a page that draws Mermaid, as GitHub's do.

        `node_colors` gives Mermaid styles for "default", "first" and "last".
        """
        from stepwell.plan.drawing.mermaid import Look, draw

        curve = getattr(curve_style, "value", curve_style)
        look = Look(with_styles, str(curve), node_colors, wrap_label_n_words, frontmatter_config or {})
        return draw(self.nodes.values(), self.edges, look)

    def draw_ascii(self) -> str:
        """Return the graph as text: boxes and lines, from the top to the bottom. Dotted lines are conditional."""
        from stepwell.plan.drawing.ascii import draw

        return draw(self.nodes.values(), self.edges)

    def print_ascii(self) -> None:
        """Print `draw_ascii()`."""
        print(self.draw_ascii())  # noqa: T201 - that is what it is for

    def to_json(self) -> dict[str, list[dict[str, Any]]]:
        """Return nodes and edges as plain dicts."""
        return {"nodes": list(map(_node_json, self.nodes.values())), "edges": list(map(_edge_json, self.edges))}

    def first_node(self) -> DrawnNode | None:
        """Return the node where every run begins."""
        return self.nodes.get(START)

    def last_node(self) -> DrawnNode | None:
        """Return the node that stands for the end; None where nothing leads there."""
        return self.nodes.get(END)


def _node_json(node: DrawnNode) -> dict[str, Any]:
    if node.data is None:
        return {"id": node.id}
    source = node.data if hasattr(node.data, "__qualname__") else type(node.data)
    home = [*(getattr(source, "__module__", None) or "").split("."), source.__qualname__]
    shown: dict[str, Any] = {"id": node.id, "type": "runnable", "data": {"id": home, "name": node.name}}
    return {**shown, "metadata": dict(node.metadata)} if node.metadata else shown


def _edge_json(edge: DrawnEdge) -> dict[str, Any]:
    shown: dict[str, Any] = {"source": edge.source, "target": edge.target}
    if edge.data is not None:
        shown["data"] = edge.data
    return {**shown, "conditional": True} if edge.conditional else shown


def drawable(nodes: Iterable[DrawnNode], edges: Iterable[DrawnEdge], xray: int | bool = False) -> DrawnGraph:
    """Return the drawable graph of a plan's outline; with `xray`, graphs that are nodes are opened, that many deep."""
    graph = DrawnGraph({node.id: node for node in nodes}, list(edges))
    if xray:
        for node in list(graph.nodes.values()):
            inner = getattr(getattr(node.data, "plan", None), "drawn", None)
            if inner is not None:
                _open(graph, node.id, drawable(inner[0], inner[1], xray if xray is True else xray - 1))
    return graph


def _open(graph: DrawnGraph, name: str, inner: DrawnGraph) -> None:
    """Put the nodes of a graph in the place of the node that runs it."""
    first = _trim(inner, START)
    last = _trim(inner, END)
    del graph.nodes[name]
    graph.nodes.update({f"{name}:{key}": node._replace(id=f"{name}:{key}") for key, node in inner.nodes.items()})
    graph.edges = [
        edge._replace(
            source=f"{name}:{last}" if edge.source == name else edge.source,
            target=f"{name}:{first}" if edge.target == name else edge.target,
        )
        for edge in graph.edges
    ]
    graph.edges += [
        edge._replace(source=f"{name}:{edge.source}", target=f"{name}:{edge.target}") for edge in inner.edges
    ]


def _trim(graph: DrawnGraph, virtual: str) -> str:
    """Take a START or END with one plain edge away; return the node that stands at that side then."""
    ends = [edge for edge in graph.edges if virtual in (edge.source, edge.target)]
    if len(ends) != 1 or ends[0].conditional or len(graph.nodes) < 2:
        return virtual if virtual in graph.nodes else next(reversed(graph.nodes))
    del graph.nodes[virtual]
    graph.edges.remove(ends[0])
    return ends[0].target if virtual == START else ends[0].source
