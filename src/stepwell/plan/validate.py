"""Why a graph was refused: one function a reason, run in the order of `CHECKS`.

Only what the whole graph shows is checked here; what one call shows was refused by that call. A check takes the graph
and the breakpoints it is compiled with, and raises InvalidGraphError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stepwell.errors import InvalidGraphError
from stepwell.graph.policies import idle_needs_async
from stepwell.graph.state_graph import StateGraph
from stepwell.graph.types import END, START
from stepwell.plan.reach import unreachable

Builder = StateGraph[Any, Any, Any, Any]
Check = Callable[[Builder, Sequence[str]], None]


def validate(builder: Builder, breakpoints: Sequence[str] = ()) -> None:
    """Raise InvalidGraphError for the first reason not to compile the graph."""
    for check in CHECKS:
        check(builder, breakpoints)


def edges_start_at_known_nodes(builder: Builder, breakpoints: Sequence[str]) -> None:
    """An edge, join or router has a node, or START, as its source."""
    for source in _sources(builder):
        if source != START and source not in builder.nodes:
            raise InvalidGraphError(f"Found edge starting at unknown node '{source}'. {_known(builder)}", node=source)


def there_is_an_entry(builder: Builder, breakpoints: Sequence[str]) -> None:
    """Something leads from START."""
    if START not in set(_sources(builder)):
        raise InvalidGraphError("Graph must have an entrypoint: add at least one edge from START to another node")


def branches_lead_to_known_nodes(builder: Builder, breakpoints: Sequence[str]) -> None:
    """A path map names nodes, or END."""
    for source, branches in builder.branches.items():
        for branch in branches.values():
            for target in (branch.path_map or {}).values():
                if target != END and target not in builder.nodes:
                    text = f"At '{source}' node, '{branch.name}' branch found unknown target '{target}'"
                    raise InvalidGraphError(f"{text}. {_known(builder)}", node=source, target=target)


def edges_end_at_known_nodes(builder: Builder, breakpoints: Sequence[str]) -> None:
    """An edge, a join and a declared jump lead to a node, or to END."""
    for target in _targets(builder):
        if target != END and target not in builder.nodes:
            raise InvalidGraphError(f"Found edge ending at unknown node `{target}`. {_known(builder)}", node=target)


def breakpoints_are_nodes(builder: Builder, breakpoints: Sequence[str]) -> None:
    """interrupt_before and interrupt_after name nodes."""
    for name in breakpoints:
        if name not in builder.nodes:
            raise InvalidGraphError(f"Interrupt node `{name}` not found. {_known(builder)}", node=name)


def every_node_is_reachable(builder: Builder, breakpoints: Sequence[str]) -> None:
    """No node is left that nothing leads to."""
    if missing := unreachable(builder):
        names = ", ".join(f"`{name}`" for name in missing)
        raise InvalidGraphError(
            f"Nothing leads to node {names}. Add an edge to it; where a node jumps there by Command(goto=...), say so "
            "with add_node(..., destinations=(...)) or a Command[Literal[...]] return hint.",
            nodes=missing,
        )


def timeouts_can_be_kept(builder: Builder, breakpoints: Sequence[str]) -> None:
    """A node with an idle timeout is async, or can be called so."""
    for name, node in builder.nodes.items():
        idle = node.timeout is not None and node.timeout.idle_timeout is not None
        if idle and not node.code.is_async and node.code.acall is None:
            raise InvalidGraphError(idle_needs_async(name), node=name)


CHECKS: tuple[Check, ...] = (
    edges_start_at_known_nodes,
    there_is_an_entry,
    branches_lead_to_known_nodes,
    edges_end_at_known_nodes,
    breakpoints_are_nodes,
    every_node_is_reachable,
    timeouts_can_be_kept,
)


def _sources(builder: Builder) -> Iterator[str]:
    yield from (start for start, _ in builder.edges)
    yield from (start for starts, _ in builder.waiting_edges for start in starts)
    yield from builder.branches


def _targets(builder: Builder) -> Iterator[str]:
    yield from (end for _, end in builder.edges)
    yield from (end for _, end in builder.waiting_edges)
    yield from (end for node in builder.nodes.values() for end in node.ends)


def _known(builder: Builder) -> str:
    return f"Nodes: {', '.join(builder.nodes) or 'none'}."
