"""From the graph as written to what is drawn of it. Made when a graph is compiled, so that it stays what was compiled.

A node leads where its edges, joins, path maps and declared jumps lead; a node that leads nowhere ends its branch. A
router without a path map may lead to any node, and is drawn so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from stepwell.graph.nodes import NodeSpec
from stepwell.graph.state_graph import StateGraph
from stepwell.graph.types import END, START
from stepwell.plan.drawing.graph import DrawnEdge, DrawnNode

Builder = StateGraph[Any, Any, Any, Any]
Outline = tuple[tuple[DrawnNode, ...], tuple[DrawnEdge, ...]]


def outline(builder: Builder, before: Collection[str], after: Collection[str]) -> Outline:
    """Return nodes and edges: START first, nodes in the order they were added, END last if anything leads there."""
    edges = _edges(builder)
    nodes = [DrawnNode(START, START, builder.input_schema)]
    nodes += [_node(spec, spec.name in before, spec.name in after) for spec in builder.nodes.values()]
    if any(edge.target == END for edge in edges):
        nodes.append(DrawnNode(END, END))
    return tuple(nodes), tuple(edges)


def _node(spec: NodeSpec, before: bool, after: bool) -> DrawnNode:
    metadata = dict(spec.metadata)
    if spec.defer:
        metadata["defer"] = True
    if before or after:
        metadata["__interrupt"] = ",".join([*(["before"] if before else []), *(["after"] if after else [])])
    return DrawnNode(spec.name, spec.name, spec.code.source, metadata or None)


def _edges(builder: Builder) -> list[DrawnEdge]:
    plain = set(builder.edges) | {(start, end) for starts, end in builder.waiting_edges for start in starts}
    labels: dict[tuple[str, str], list[str]] = {}
    for source, target, label in _conditional(builder):
        known = labels.setdefault((source, target), [])
        if label is not None and label != target and label not in known:
            known.append(label)
    edges = [DrawnEdge(*pair) for pair in plain]
    edges += [DrawnEdge(*pair, ", ".join(text) or None, True) for pair, text in labels.items() if pair not in plain]
    edges.sort(key=lambda edge: (edge.source, edge.target))
    leading = {edge.source for edge in edges}
    return [*edges, *(DrawnEdge(name, END) for name in builder.nodes if name not in leading)]


def _conditional(builder: Builder) -> Iterator[tuple[str, str, str | None]]:
    """Yield source, target and label of what a router or a node decides."""
    for source, branches in builder.branches.items():
        for branch in branches.values():
            if branch.path_map is None:
                yield from ((source, target, None) for target in (*builder.nodes, END) if target != source)
            else:
                yield from ((source, target, str(result)) for result, target in branch.path_map.items())
    for node in builder.nodes.values():
        yield from ((node.name, target, label) for target, label in node.ends.items())
