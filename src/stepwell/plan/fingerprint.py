"""The fingerprint of a graph: what changes it is what could change the meaning of a stored thread.

It covers nodes, edges, routers with their path maps, joins and the declarations of channels; not the code of nodes, not
names that are merely shown, not the order in which things were added. So unrelated edits of a program leave it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stepwell.graph.channels import Channel
from stepwell.graph.declared import value_text
from stepwell.ids import structural_hash
from stepwell.plan.tables import BranchPlan, JoinPlan, NodePlan


def fingerprint(
    nodes: Iterable[NodePlan], joins: Iterable[JoinPlan], channels: Mapping[str, Channel], managed: Mapping[str, str]
) -> str:
    """Return 32 hex digits over topology and declared state. `nodes` includes START."""
    return structural_hash(
        "graph",
        tuple(sorted(map(_node, nodes))),
        tuple(sorted((join.target, tuple(sorted(join.sources))) for join in joins)),
        tuple(sorted((name, channel.declaration()) for name, channel in channels.items())),
        tuple(sorted(managed.items())),
    )


def _node(node: NodePlan) -> tuple[Any, ...]:
    branches = tuple(sorted(map(_branch, node.branches)))
    return (node.name, node.defer, node.goto_replaces, tuple(sorted(node.edges)), branches)


def _branch(branch: BranchPlan) -> tuple[Any, ...]:
    if branch.path_map is None:
        return (branch.name, False, ())
    return (branch.name, True, tuple(sorted((value_text(result), end) for result, end in branch.path_map.items())))
