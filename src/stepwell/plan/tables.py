"""The compiled tables a run reads: frozen, complete, free of I/O. `compile.py` makes them, `superstep` reads them.

Nothing here decides anything. A plan holds what may happen; which of it happens next is the superstep layer's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stepwell.graph.types import START

if TYPE_CHECKING:
    from stepwell.graph.channels import Channel
    from stepwell.graph.deltas import DeltaRule
    from stepwell.graph.policies import CachePolicy, RetryPolicy, TimeoutPolicy
    from stepwell.graph.schema import Schema
    from stepwell.plan.drawing.outline import Outline


@dataclass(frozen=True, slots=True)
class Callee:
    """User code and how to call it: `call(value, **injected)`."""

    call: Callable[..., Any]
    is_async: bool
    inject: tuple[str, ...] = ()
    """Keyword parameters to fill: names among config, runtime, writer, store, previous."""
    required: frozenset[str] = frozenset()
    """The injected names that have no default."""
    acall: Callable[..., Any] | None = None
    """The async way to call it, for code that has both ways: a Runnable's `ainvoke` beside its `invoke`."""

    def as_async(self) -> Callee | None:
        """Return the async way to call it; None where it has none."""
        if self.is_async:
            return self
        return replace(self, call=self.acall, is_async=True) if self.acall is not None else None


@dataclass(frozen=True, slots=True)
class BranchPlan:
    """A router: called with the state its node just wrote, it names the next nodes."""

    name: str
    callee: Callee
    reads: Schema
    path_map: Mapping[Any, str] | None
    """Router result → node name (END included); None where the result is the node name itself."""


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A barrier: `target` runs once every source has run since the last time it was released."""

    id: str
    sources: frozenset[str]
    target: str


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A node: what to call, what it reads, where it leads."""

    name: str
    callee: Callee
    reads: Schema
    edges: tuple[str, ...] = ()
    """Targets of static edges, END left out, in the order they were added."""
    joins: tuple[str, ...] = ()
    """Ids of the joins this node is a source of."""
    branches: tuple[BranchPlan, ...] = ()
    retry: tuple[RetryPolicy, ...] = ()
    timeout: TimeoutPolicy | None = None
    """What limits one attempt, in seconds."""
    cache: CachePolicy | None = None
    """Whether, and for how long, what it returned may serve again."""
    code: str = ""
    """What tells its code from other code, where it has a cache policy."""
    defer: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    goto_replaces: bool = False
    """Whether a `Command` with `goto` replaces the static edges instead of adding to them."""
    subgraph: Any = None
    """The compiled graph, where the node is one (`graph.subgraph.Subgraph`)."""


@dataclass(frozen=True, slots=True)
class Changed:
    """How to read state that other code stored: the names that were changed, and what converts the values."""

    nodes: Mapping[str, str] = field(default_factory=dict)
    """Recorded name of a node → its name now."""
    channels: Mapping[str, str] = field(default_factory=dict)
    """Recorded name of a channel → its name now."""
    migrate: Callable[[Any, str], Any] | None = None
    """(stored values, the version that stored them) → the values this version works with."""
    on_change: str | Callable[[Any], None] = "warn"
    """What a run does that finds another fingerprint: ignore | warn | raise, or a function of the `GraphChange`."""


_NOTHING_CHANGED = Changed()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a run needs to know of a graph."""

    graph_id: str
    version: str
    fingerprint: str
    """32 hex digits over topology and declared state; unrelated code does not change it."""
    nodes: Mapping[str, NodePlan]
    start: NodePlan
    """START as a node: its callee maps the input, its edges and branches are the graph's entry."""
    channels: Mapping[str, Channel]
    """Every channel that holds a value, by name. A state without keys has the one channel `__root__`,
    a workflow `__end__` and `__previous__`."""
    managed: Mapping[str, str]
    """State keys computed per superstep: name → "remaining_steps" | "is_last_step"."""
    joins: Mapping[str, JoinPlan]
    state: Schema
    input: Schema
    output: Schema
    context: Any
    """The context schema as given, or None."""
    interrupt_before: frozenset[str]
    interrupt_after: frozenset[str]
    schemas: tuple[Any, ...]
    """The user's schema classes, from which the codec's registry is made."""
    entry: str = START
    """The node that a new input plans: START, which maps it to channels, or a workflow, which takes it as it is."""
    settling: tuple[str, ...] = ()
    """Channels whose `settle` must be asked after a superstep that did not write them."""
    inventive: frozenset[str] = frozenset()
    """Channels whose writes may need ids made up (`Channel.invents_ids`)."""
    replaced: frozenset[str] = frozenset()
    """Channels whose one write a superstep is their next value, in a state where nothing else happens to a write."""
    deltas: Mapping[str, DeltaRule] = field(default_factory=dict)
    """Channels that may be stored as what was written to them."""
    rules: Mapping[str, DeltaRule] = field(default_factory=dict)
    """The rules of the channels, by the names they are recorded under."""
    shape: str = ""
    """What the fingerprint is the hash of (`plan.fingerprint`)."""
    drawn: Outline = ((), ())
    """Nodes and edges as `get_graph` shows them."""
    changed: Changed = _NOTHING_CHANGED
    """What the user says about state that other code stored."""

    @property
    def is_workflow(self) -> bool:
        """Whether the graph is one function (`entrypoint`), whose input needs no mapping."""
        return self.entry != START

    def node_of(self, recorded: str) -> NodePlan | None:
        """Return the node that a recorded name stands for: the node of that name, or the one it is an alias of."""
        if recorded == self.start.name:
            return self.start
        return self.nodes.get(self.changed.nodes.get(recorded, recorded))

    def with_aliases(self, names: frozenset[str]) -> frozenset[str]:
        """Return these nodes' names, and every name one of them was recorded with."""
        if not (names and self.changed.nodes):
            return names
        return names | {recorded for recorded, name in self.changed.nodes.items() if name in names}
