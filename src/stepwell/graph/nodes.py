"""Nodes and routers as the user added them: the code, the schema it reads, and where it says it may lead.

Targets are read from return hints (`Command[Literal["a", "b"]]`, `Literal["a", "b"]`), from `destinations` and from
path maps. Whether they exist is checked when the graph is compiled, by `plan.validate`.
"""

from __future__ import annotations

import typing
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from stepwell.errors import InvalidGraphError
from stepwell.graph.callables import UserCode, hints_of, name_of, user_code
from stepwell.graph.injection import first_parameter
from stepwell.graph.policies import CachePolicy, RetryPolicy, TimeoutPolicy
from stepwell.graph.schema import is_schema_class
from stepwell.graph.types import END, START, Command
from stepwell.ids import is_holdable

RESERVED_CHARACTERS = ("|", ":")
GotoMode = Literal["add", "replace"]


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node as the user added it."""

    name: str
    code: UserCode
    input_schema: Any
    ends: Mapping[str, str | None] = field(default_factory=dict)
    """Targets the node says it may jump to, each with a label or None."""
    retry: tuple[RetryPolicy, ...] = ()
    timeout: TimeoutPolicy | None = None
    cache: CachePolicy | None = None
    defer: bool = False
    goto: GotoMode = "add"
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BranchSpec:
    """A router as the user added it."""

    name: str
    code: UserCode
    input_schema: Any
    """The schema its first parameter is annotated with, or None: it reads what its node reads."""
    path_map: Mapping[Hashable, str] | None


def node_name(name: Any) -> str:
    """Return `name` as a node name: an enum member stands for its value."""
    name = name.value if isinstance(name, Enum) else name
    if not isinstance(name, str):
        raise TypeError(f"A node name is a string, not {type(name).__name__}")
    return name


def new_node_name(name: str) -> str:
    """Return `name` if a node may be called so."""
    if name in (START, END):
        raise InvalidGraphError(f"Node `{name}` is reserved.", node=name)
    if not name:
        raise InvalidGraphError("A node name must not be empty.", node=name)
    if not is_holdable(name):
        raise InvalidGraphError(f"A node name is valid Unicode without NUL, not {name!r}.", node=name)
    for character in RESERVED_CHARACTERS:
        if character in name:
            raise InvalidGraphError(
                f"'{character}' is a reserved character and is not allowed in the node names.", node=name
            )
    return name


def own_name(action: Any) -> str:
    """Return the name of a node added without one."""
    name = name_of(action)
    if name is None:
        raise InvalidGraphError("Node name must be provided if action is not a function: give the lambda a name.")
    return name


def input_schema_of(action: Any) -> Any:
    """Return the schema class the first parameter is annotated with, or None."""
    hint = hints_of(action).get(first_parameter(action) or "")
    return hint if is_schema_class(hint) else None


def jump_targets(action: Any) -> dict[str, str | None]:
    """Return the nodes a return hint says a node's `Command` may go to."""
    return dict.fromkeys(_command_literals(hints_of(action).get("return")))


def _command_literals(hint: Any) -> list[str]:
    if typing.get_origin(hint) is Command:
        return [node_name(value) for arg in typing.get_args(hint) for value in _literals(arg)]
    return [target for arg in typing.get_args(hint) for target in _command_literals(arg)]


def _literals(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


def destination_map(destinations: Mapping[str, str] | Sequence[str]) -> dict[str, str | None]:
    """Return declared destinations as target → label."""
    if isinstance(destinations, str):
        raise TypeError("destinations is a tuple of node names or a dict of node names to labels, not a string")
    if isinstance(destinations, Mapping):
        return {node_name(target): label for target, label in destinations.items()}
    return {node_name(target): None for target in destinations}


def retry_policies(policy: RetryPolicy | Sequence[RetryPolicy] | None) -> tuple[RetryPolicy, ...]:
    """Return one policy or several as a tuple, in the order they are asked."""
    policies = () if policy is None else (policy,) if isinstance(policy, RetryPolicy) else tuple(policy)
    for item in policies:
        if not isinstance(item, RetryPolicy):
            raise TypeError(f"retry_policy is a RetryPolicy or a sequence of them, not {type(item).__name__}")
    return policies


def cache_policy(policy: Any) -> CachePolicy | None:
    """Return a cache policy as it was given. TypeError for what is none."""
    if policy is not None and not isinstance(policy, CachePolicy):
        raise TypeError(f"cache_policy is a CachePolicy, not {type(policy).__name__}")
    return policy


def branch_of(source: str, path: Any, path_map: Mapping[Hashable, str] | Sequence[str] | None) -> BranchSpec:
    """Inspect a router: its name, what it reads and, if declared, where its results lead."""
    name = name_of(path) or "condition"
    code = user_code(path, f"The router `{name}` of node `{source}`")
    return BranchSpec(name, code, input_schema_of(path), _path_map(path, path_map))


def _path_map(path: Any, given: Mapping[Hashable, str] | Sequence[str] | None) -> dict[Hashable, str] | None:
    if isinstance(given, Mapping):
        return {result: node_name(target) for result, target in given.items()}
    if isinstance(given, str):
        raise TypeError("path_map is a dict or a list of node names, not a string")
    results = _literals(hints_of(path).get("return")) if given is None else tuple(given)
    if given is not None and len(set(results)) < len(results):
        raise InvalidGraphError(f"The path_map {list(results)!r} names a node twice.")
    return {result: node_name(result) for result in results} or None
