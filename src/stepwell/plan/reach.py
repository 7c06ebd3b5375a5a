"""Which nodes a run can get to: what finds the node nobody leads to.

A node leads where its edges, joins, path maps and declared jumps lead. A router without a map, code that makes a
`Send`, and code that makes a `Command` without saying where it goes lead anywhere. The rule kept: a node is called
unreachable only if no code that was read could reach it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stepwell.graph.mentions import mentions
from stepwell.graph.nodes import BranchSpec, NodeSpec
from stepwell.graph.state_graph import StateGraph
from stepwell.graph.types import END, START, Command, Send

Builder = StateGraph[Any, Any, Any, Any]


def unreachable(builder: Builder) -> list[str]:
    """Return the nodes that no run can get to, in the order they were added."""
    reached: set[str] = set()
    waiting = [START]
    while waiting:
        name = waiting.pop()
        if name in reached or name == END:
            continue
        reached.add(name)
        waiting.extend(_successors(builder, name))
    missing = [name for name in builder.nodes if name not in reached]
    return [] if missing and _leads_anywhere(builder, reached) else missing


def _successors(builder: Builder, name: str) -> Iterator[str]:
    yield from (end for start, end in builder.edges if start == name)
    yield from (end for starts, end in builder.waiting_edges if name in starts)
    for branch in builder.branches.get(name, {}).values():
        yield from (branch.path_map or {}).values()
    if name in builder.nodes:
        yield from builder.nodes[name].ends


def _leads_anywhere(builder: Builder, reached: set[str]) -> bool:
    branches: Mapping[str, Mapping[str, BranchSpec]] = builder.branches
    routers = [branch for name in reached for branch in branches.get(name, {}).values()]
    if any(branch.path_map is None for branch in routers):
        return True
    if any(_may_send(branch) for branch in routers):
        return True
    return any(_may_jump(builder.nodes[name]) for name in reached if name in builder.nodes)


def _may_send(branch: BranchSpec) -> bool:
    return mentions(branch.code.source, Send)


def _may_jump(node: NodeSpec) -> bool:
    return not node.ends and (mentions(node.code.source, Command) or mentions(node.code.source, Send))
