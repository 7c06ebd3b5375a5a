"""The shape of a graph and its fingerprint: what changes them is what could change the meaning of a stored thread.

They cover nodes, edges, routers with their path maps, joins and the declarations of channels; not the code of nodes,
not names that are merely shown, not the order in which things were added. So unrelated edits of a program leave them
alone. A shape is text, so that it can be stored once and be read by code that knows nothing of the graph it came from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from stepwell.graph.channels import Channel
from stepwell.graph.declared import value_text
from stepwell.plan.tables import BranchPlan, JoinPlan, NodePlan

Shape = Mapping[str, Any]
"""A shape read back: nodes and channels by name, joins by id."""


def shape_of(
    nodes: Iterable[NodePlan], joins: Iterable[JoinPlan], channels: Mapping[str, Channel], managed: Mapping[str, str]
) -> str:
    """Return the text of topology and declared state. `nodes` includes START."""
    shape = {
        "nodes": {node.name: _node(node) for node in nodes},
        "joins": {join.id: [join.target, sorted(join.sources)] for join in joins},
        "channels": {name: channel.declared() for name, channel in channels.items()},
        "managed": dict(managed),
    }
    return json.dumps(shape, ensure_ascii=True, separators=(",", ":"), sort_keys=True)


def read_shape(shape: str) -> Shape:
    """Return the parts of a stored shape."""
    parts: Shape = json.loads(shape)
    return parts


def _node(node: NodePlan) -> dict[str, Any]:
    return {
        "defer": node.defer,
        "goto_replaces": node.goto_replaces,
        "edges": sorted(node.edges),
        "branches": {branch.name: _branch(branch) for branch in node.branches},
    }


def _branch(branch: BranchPlan) -> list[list[str]] | None:
    if branch.path_map is None:
        return None
    return sorted([value_text(result), end] for result, end in branch.path_map.items())
