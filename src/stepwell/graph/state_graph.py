"""`StateGraph`: nodes, edges and routers as the user writes them, in the order they were written.

Mistakes that one call shows are refused by that call; those that only the whole graph shows are found by
`plan.validate` when it is compiled. Compiling and running belong to the layers above, which register themselves here by
`use_compiler` and `use_engine`, so that this layer imports neither.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Generic, Literal, Protocol, Self

from typing_extensions import TypeVar

from stepwell.errors import InvalidGraphError
from stepwell.graph import nodes as make
from stepwell.graph.callables import user_code
from stepwell.graph.channels import Channel
from stepwell.graph.nodes import BranchSpec, GotoMode, NodeSpec
from stepwell.graph.policies import CachePolicy, RetryPolicy, TimeoutPolicy
from stepwell.graph.schema import Schema
from stepwell.graph.state_keys import StateKeys
from stepwell.graph.types import END, START

StateT = TypeVar("StateT", default=Any)
ContextT = TypeVar("ContextT", default=None)
InputT = TypeVar("InputT", default=StateT)
OutputT = TypeVar("OutputT", default=StateT)

PathMap = Mapping[Hashable, str] | Sequence[str]
Breakpoints = Literal["*"] | Sequence[str]


class StateGraph(Generic[StateT, ContextT, InputT, OutputT]):
    """A graph whose nodes read and update a shared state: add nodes and edges, then `compile()` it.

    `input_schema` and `output_schema` narrow what a run takes and returns; both default to the state. `context_schema`
    describes what a run is given beside its state. Every method but `compile` returns the graph.
    """

    def __init__(
        self,
        state_schema: Any,
        context_schema: Any = None,
        *,
        input_schema: Any = None,
        output_schema: Any = None,
    ) -> None:
        self.state_schema = state_schema
        self.context_schema = context_schema
        self.input_schema = state_schema if input_schema is None else input_schema
        self.output_schema = state_schema if output_schema is None else output_schema
        self.state_keys = StateKeys()
        self.state_keys.add(state_schema)
        self.state_keys.add(self.input_schema, allow_managed=self.input_schema is state_schema)
        self.state_keys.add(self.output_schema, allow_managed=self.output_schema is state_schema)
        self.nodes: dict[str, NodeSpec] = {}
        self.edges: dict[tuple[str, str], None] = {}
        """(source, target) of every plain edge, in the order they were added."""
        self.waiting_edges: dict[tuple[tuple[str, ...], str], None] = {}
        """(sources, target) of every join."""
        self.branches: dict[str, dict[str, BranchSpec]] = {}
        """Routers by source, then by name."""
        self.compiled = False

    @property
    def channels(self) -> Mapping[str, Channel]:
        """Every key of every schema that holds a value."""
        return self.state_keys.channels

    @property
    def managed(self) -> Mapping[str, str]:
        """Every managed key and what it holds."""
        return self.state_keys.managed

    @property
    def schemas(self) -> Mapping[Any, Schema]:
        """Every schema class the graph knows, the state's first."""
        return self.state_keys.schemas

    def add_node(
        self,
        node: Any,
        action: Any = None,
        *,
        defer: bool = False,
        metadata: Mapping[str, Any] | None = None,
        input_schema: Any = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
        cache_policy: CachePolicy | None = None,
        destinations: Mapping[str, str] | Sequence[str] | None = None,
        goto: GotoMode = "add",
    ) -> Self:
        """Add a node: `add_node("name", function)`, or `add_node(function)` under the function's own name.

        The function takes the state, or what its first parameter is annotated with, and returns an update of it. A
        deferred node waits until nothing else is left to run. `destinations` says where a `Command` it returns may go;
        `goto="replace"` lets such a jump replace the node's static edges instead of adding to them.
        """
        self._warn_if_compiled("node")
        if action is None:
            if isinstance(node, str):
                raise InvalidGraphError(f"Node `{make.node_name(node)}` has no action: add_node(name, function).")
            node, action = make.own_name(node), node
        name = make.node_name(node)
        if name in self.nodes:
            raise InvalidGraphError(f"Node `{name}` already present.", node=name)
        make.new_node_name(name)
        if goto not in ("add", "replace"):
            raise InvalidGraphError(f"goto of node `{name}` must be 'add' or 'replace', not {goto!r}", node=name)
        reads = make.input_schema_of(action) if input_schema is None else input_schema
        spec = NodeSpec(
            name,
            user_code(action, f"Node `{name}`"),
            self.state_schema if reads is None else reads,
            make.jump_targets(action) if destinations is None else make.destination_map(destinations),
            make.retry_policies(retry_policy),
            TimeoutPolicy.coerce(timeout),
            make.cache_policy(cache_policy),
            defer,
            goto,
            dict(metadata or {}),
        )
        self.state_keys.add(spec.input_schema)
        self.nodes[name] = spec
        return self

    def add_edge(self, start_key: str | Sequence[str], end_key: str) -> Self:
        """Run `end_key` after `start_key`; after all of them, where `start_key` is a list."""
        self._warn_if_compiled("edge")
        end = make.node_name(end_key)
        if isinstance(start_key, list | tuple):
            return self._add_join([make.node_name(start) for start in start_key], end)
        start = make.node_name(start_key)
        self._check_edge(start, end)
        self.edges[start, end] = None
        return self

    def _add_join(self, starts: list[str], end: str) -> Self:
        if not starts:
            raise InvalidGraphError(f"A join to `{end}` needs at least one node to wait for.", target=end)
        for start in starts:
            self._check_edge(start, end)
            self._check_known(start)
        if end != END:
            self._check_known(end)
        if len(set(starts)) < len(starts):
            raise InvalidGraphError(f"The join of {starts} to `{end}` names a node twice.", target=end)
        if len(starts) == 1:
            self.edges[starts[0], end] = None
        else:
            self.waiting_edges[tuple(starts), end] = None
        return self

    def _check_edge(self, start: str, end: str) -> None:
        if start == END:
            raise InvalidGraphError("END cannot be a start node", target=end)
        if end == START:
            raise InvalidGraphError("START cannot be an end node", source=start)

    def _check_known(self, name: str) -> None:
        if name not in self.nodes:
            raise InvalidGraphError(f"Need to add_node `{name}` first", node=name)

    def add_conditional_edges(self, source: str, path: Any, path_map: PathMap | None = None) -> Self:
        """Let `path` choose what runs after `source`: it is called with the state the node just wrote.

        It returns a node name, a `Send`, END, or a list of them; with `path_map`, results are looked up in it first. A
        `Literal` return hint serves as the map.
        """
        self._warn_if_compiled("edge")
        source = make.node_name(source)
        if source == END:
            raise InvalidGraphError("END cannot be a start node")
        branch = make.branch_of(source, path, path_map)
        if branch.name in self.branches.get(source, {}):
            raise InvalidGraphError(f"Branch with name `{branch.name}` already exists for node `{source}`", node=source)
        if branch.input_schema is not None:
            self.state_keys.add(branch.input_schema)
        self.branches.setdefault(source, {})[branch.name] = branch
        return self

    def add_sequence(self, nodes: Sequence[Any]) -> Self:
        """Add nodes and an edge from each to the next. An item is a function or (name, function)."""
        if not nodes:
            raise InvalidGraphError("Sequence requires at least one node.")
        previous: str | None = None
        for item in nodes:
            name, action = item if isinstance(item, tuple) and len(item) == 2 else (make.own_name(item), item)
            name = make.node_name(name)
            if name in self.nodes:
                raise InvalidGraphError(
                    f"Node names must be unique: node with the name '{name}' already exists. "
                    "Give one of them another name: (name, function).",
                    node=name,
                )
            self.add_node(name, action)
            if previous is not None:
                self.add_edge(previous, name)
            previous = name
        return self

    def set_entry_point(self, key: str) -> Self:
        """Start with this node."""
        return self.add_edge(START, key)

    def set_finish_point(self, key: str) -> Self:
        """End after this node."""
        return self.add_edge(key, END)

    def set_conditional_entry_point(self, path: Any, path_map: PathMap | None = None) -> Self:
        """Let `path` choose what runs first, from the input."""
        return self.add_conditional_edges(START, path, path_map)

    def validate(self, interrupt: Sequence[str] | None = None) -> Self:
        """Raise InvalidGraphError if the graph cannot be compiled; `interrupt` names nodes it would pause at."""
        _compiler()(self, interrupt_before=tuple(interrupt or ()))
        return self

    def compile(
        self,
        checkpointer: Any = None,
        *,
        cache: Any = None,
        store: Any = None,
        interrupt_before: Breakpoints | None = None,
        interrupt_after: Breakpoints | None = None,
        debug: bool = False,
        name: str | None = None,
        version: str = "",
        aliases: Mapping[str, str] | None = None,
        migrate: Callable[[Any, str], Any] | None = None,
        on_change: str | Callable[[Any], None] = "warn",
        listeners: Sequence[Any] = (),
        events: bool = False,
    ) -> Any:
        """Check the graph and return it ready to run.

        `name` becomes the graph id under which threads are stored. `version` names this state of the code. Before the
        nodes of `interrupt_before`, and after those of `interrupt_after`, every run pauses; "*" means all of them.

        For threads that other code began: `aliases` maps names of nodes and state keys they were stored with to those
        of today; `migrate(values, from_version)` returns the values of another version as this one has them, without
        any effect of its own; `on_change` is what a run does that finds another fingerprint, "warn" (log it), "ignore",
        "raise", or a function of the `GraphChange`, which refuses by raising.
        `cache` keeps what nodes with a `cache_policy` returned (`InMemoryCache`, `SqliteCache`).
        `listeners` are called with every event of every run (`stepwell.events`); `events=True` keeps a log of them with
        each run, which `saver.events(run_id)` reads.
        """
        plan = _compiler()(
            self,
            name=name,
            version=version,
            interrupt_before=interrupt_before,
            interrupt_after=interrupt_after,
            aliases=aliases,
            migrate=migrate,
            on_change=on_change,
        )
        given = {"checkpointer": checkpointer, "cache": cache, "store": store, "debug": debug, "name": name}
        compiled = _engine()(self, plan, **given, listeners=listeners, events=events)
        self.compiled = True
        return compiled

    def _warn_if_compiled(self, what: str) -> None:
        if self.compiled:
            warnings.warn(
                f"The graph has already been compiled: this {what} is not part of what was compiled before.",
                stacklevel=3,
            )


class Compiler(Protocol):
    """Makes the plan of a graph."""

    def __call__(
        self,
        builder: StateGraph[Any, Any, Any, Any],
        *,
        name: str | None = None,
        version: str = "",
        interrupt_before: Breakpoints | None = None,
        interrupt_after: Breakpoints | None = None,
        aliases: Mapping[str, str] | None = None,
        migrate: Callable[[Any, str], Any] | None = None,
        on_change: str | Callable[[Any], None] = "warn",
    ) -> Any:
        """Return the plan, or raise InvalidGraphError."""
        ...


_registered: dict[str, Any] = {}


def use_compiler(compiler: Compiler) -> None:
    """Register what makes plans."""
    _registered["stepwell.plan.compile"] = compiler


def use_engine(factory: Callable[..., Any]) -> None:
    """Register what runs plans: `factory(builder, plan, checkpointer=, store=, debug=, name=)`."""
    _registered["stepwell.engine"] = factory


def _compiler() -> Compiler:
    return _wired("stepwell.plan.compile")  # type: ignore[no-any-return]


def _engine() -> Callable[..., Any]:
    return _wired("stepwell.engine")  # type: ignore[no-any-return]


def _wired(layer: str) -> Any:
    """Return what a layer above registered, loading it by name if nothing has loaded it yet."""
    if layer not in _registered:
        importlib.import_module(layer)
    return _registered[layer]
