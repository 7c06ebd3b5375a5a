"""Graphs as data, for tests that must not depend on one graph: a corpus of shapes and a hypothesis strategy of more.

A `GraphScript` says what each node writes, asks, sends and how often it fails; `build` makes the graph. What happens
outside of the state is the `World`'s: which calls were made, which of them fail. Nodes are functions of what they are
given and of the answers they got, so every complete run of a script from the same input ends in the same state, and
every run ends.

`graph_scripts()` needs hypothesis; nothing else here does.
"""

from __future__ import annotations

import operator
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict

from stepwell.graph.channels import DeltaChannel, EphemeralValue, LastValueAfterFinish, Topic
from stepwell.graph.state_graph import StateGraph
from stepwell.graph.types import END, START, Command, Overwrite, Send
from stepwell.runtime.scope import Runtime, interrupt

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Ask = Callable[[Any], Any]
"""How a node asks: returns the answer, or leaves the node."""


def _tell(value: list[str], writes: Sequence[list[str]]) -> list[str]:
    """Append in place, as a user's reducer may."""
    for write in writes:
        value += write
    return value


class Trace(TypedDict, total=False):
    """A state that shows the order in which it was written, through every kind of channel that is stored."""

    log: Annotated[list[str], operator.add]
    total: Annotated[int, operator.add]
    marks: Annotated[dict[str, Any], operator.or_]
    told: Annotated[list[str], DeltaChannel(_tell)]
    best: Annotated[int, max]
    heap: Annotated[list[str], Topic(str)]
    pile: Annotated[list[str], Topic(str, True)]
    fleeting: Annotated[str, EphemeralValue(str, guard=False)]
    last: Annotated[str, LastValueAfterFinish]


class ScheduledFailure(Exception):
    """What a node or router raises where the script says that it fails."""


class Called(NamedTuple):
    """One call of a node or router, as the world saw it."""

    node: str
    task_id: str
    checkpoint_id: str
    router: bool


class World:
    """Everything outside of the state: it counts calls and lets the scheduled ones fail.

    `following()` is the world after a crash: it remembers which failures have happened, and forgets the calls still in
    the air, which go on talking to the old one.
    """

    def __init__(self, failing: bool = True) -> None:
        self.failing = failing
        self.broken: frozenset[str] = frozenset()
        """Nodes that fail whenever they are called."""
        self.calls: list[Called] = []
        self._failed: Counter[str] = Counter()
        self._inside = 0
        self._changed = threading.Condition()

    def following(self) -> World:
        """Return the world as the next process finds it."""
        self.settle()
        world = World(self.failing)
        world.broken = self.broken
        world._failed = self._failed.copy()
        return world

    @contextmanager
    def call(self, called: Called) -> Iterator[None]:
        """Note a call for as long as it lasts."""
        with self._changed:
            self.calls.append(called)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def settle(self, seconds: float = 10.0) -> None:
        """Wait until no call is in the air."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._inside == 0, seconds):
                raise TimeoutError(f"{self._inside} calls did not return within {seconds} s")

    def fail(self, node: str, what: str, times: int) -> None:
        """Raise ScheduledFailure where the node is broken, and the first `times` times that `what` is asked for."""
        with self._changed:
            if node not in self.broken:
                if not self.failing or self._failed[what] >= times:
                    return
                self._failed[what] += 1
        raise ScheduledFailure(what)


@dataclass(frozen=True)
class RouterScript:
    """A router. "pick" chooses one of `to` by the state; "fan" sends `count` packets to the one in `to`; "again" leads
    back to it until `total` has reached `count`."""

    kind: str
    to: tuple[str, ...]
    count: int = 0
    fails: int = 0
    """How often a call of it fails before one succeeds."""
    asks: bool = False

    def choose(self, state: Mapping[str, Any], ask: Ask) -> Any:
        """Return where to go in this state."""
        shift = len(str(ask("which way?"))) if self.asks else 0
        total = state.get("total", 0)
        if self.kind == "pick":
            return self.to[(total + shift) % len(self.to)]
        if self.kind == "fan":
            seen = state.get("log", [])[-2:]
            return [Send(self.to[0], {"item": i + shift, "log": seen}) for i in range(self.count)]
        return self.to[0] if total < self.count else END


@dataclass(frozen=True)
class NodeScript:
    """A node: what it asks, how often it fails, where it leads."""

    name: str
    to: tuple[str, ...] = ()
    """Static edges."""
    goto: str | None = None
    """A jump by Command, beside the edges."""
    router: RouterScript | None = None
    questions: int = 0
    fails: int = 0
    """How often a call with the same input fails before one succeeds."""
    defer: bool = False
    overwrites: bool = False
    is_async: bool = False

    def act(self, given: Mapping[str, Any], ask: Ask, fail: Callable[[str, str, int], None]) -> Any:
        """Do what the node does: ask, perhaps fail, return an update."""
        item = given.get("item", "")
        answers = [ask({"node": self.name, "item": item, "n": n}) for n in range(self.questions)]
        fail(self.name, f"{self.name}{item}", self.fails)
        seen = given.get("log", [])
        text = f"{self.name}{item}:{len(seen)}" + "".join(f"={answer!r}" for answer in answers)
        update = {
            "log": Overwrite([text]) if self.overwrites else [text],
            "total": 1,
            "marks": {self.name: [len(seen), *answers]},
            "told": [text[:2]],
            "best": len(seen),
            "heap": [text],
            "pile": [self.name],
            "fleeting": text,
            "last": text,
        }
        return update if self.goto is None else Command(update=update, goto=self.goto)


@dataclass(frozen=True)
class GraphScript:
    """A graph. Nodes stand in an order in which all ways but "again" lead forward, so that every run ends."""

    nodes: tuple[NodeScript, ...]
    entry: tuple[str, ...]
    joins: tuple[tuple[tuple[str, ...], str], ...] = ()
    start: RouterScript | None = None
    """User code that routes START, beside the entry."""

    def node(self, name: str) -> NodeScript:
        """Return the node of this name."""
        return next(node for node in self.nodes if node.name == name)

    def build(self, world: World) -> StateGraph[Any, Any, Any, Any]:
        """Return the graph, its nodes talking to this world."""
        graph = StateGraph(Trace)
        for node in self.nodes:
            jumps = None if node.goto is None else (node.goto,)
            graph.add_node(node.name, _node(node, world), defer=node.defer, destinations=jumps)
        for name in self.entry:
            graph.add_edge(START, name)
        for node in self.nodes:
            for target in node.to:
                graph.add_edge(node.name, target)
            if node.router is not None:
                _add_router(graph, node.name, node.router, world)
        for sources, target in self.joins:
            graph.add_edge(list(sources), target)
        if self.start is not None:
            _add_router(graph, START, self.start, world)
        return graph


def _node(script: NodeScript, world: World) -> Callable[..., Any]:
    def act(state: Any, runtime: Runtime[Any]) -> Any:
        with world.call(_called(script.name, runtime, router=False)):
            return script.act(state, interrupt, world.fail)

    async def act_async(state: Any, runtime: Runtime[Any]) -> Any:
        return act(state, runtime)

    return act_async if script.is_async else act


def _add_router(graph: StateGraph[Any, Any, Any, Any], source: str, script: RouterScript, world: World) -> None:
    def choose(state: Any, runtime: Runtime[Any]) -> Any:
        with world.call(_called(source, runtime, router=True)):
            chosen = script.choose(state, interrupt)
            world.fail("", f"router of {source}", script.fails)
            return chosen

    graph.add_conditional_edges(source, choose, list(dict.fromkeys([*script.to, END])))


def _called(node: str, runtime: Runtime[Any], router: bool) -> Called:
    info = runtime.execution_info
    assert info is not None
    return Called(node, info.task_id, info.checkpoint_id, router)


def _chain(names: str, **options: Any) -> tuple[NodeScript, ...]:
    following = [*names[1:], None]
    return tuple(NodeScript(n, () if f is None else (f,), **options) for n, f in zip(names, following, strict=True))


_N = NodeScript
_R = RouterScript

CORPUS: Mapping[str, GraphScript] = {
    "chain": GraphScript(_chain("abc"), ("a",)),
    "fan-out": GraphScript((_N("a", ("b", "c", "d")), _N("b"), _N("c", is_async=True), _N("d")), ("a",)),
    "join": GraphScript((_N("a", ("b",)), _N("b"), _N("c"), _N("d")), ("a", "c"), joins=((("b", "c"), "d"),)),
    "join twice": GraphScript(
        (_N("a"), _N("b"), _N("c", router=_R("again", ("a",), 8)), _N("d")),
        ("a", "b"),
        joins=((("a", "b"), "c"), (("a", "c"), "d")),
    ),
    "sends": GraphScript((_N("a", router=_R("fan", ("b",), 3)), _N("b", ("c",)), _N("c")), ("a",)),
    "sends beside a pull": GraphScript(
        (_N("a", ("b",), router=_R("fan", ("b",), 2)), _N("b", router=_R("pick", ("c", END))), _N("c")), ("a",)
    ),
    "sends, a pull and a question": GraphScript(
        (_N("a", ("c", "d"), router=_R("fan", ("b",), 2)), _N("b"), _N("c"), _N("d", questions=1)), ("a",)
    ),
    "loop": GraphScript((_N("a", ("b",)), _N("b", router=_R("again", ("a",), 7))), ("a",)),
    "jump": GraphScript((_N("a", ("b",), goto="c"), _N("b"), _N("c", goto="d"), _N("d")), ("a",)),
    "deferred": GraphScript((_N("a", ("b", "d")), _N("b", ("c",)), _N("c"), _N("d", defer=True)), ("a",)),
    "deferred join": GraphScript(
        (_N("a"), _N("b", ("c",)), _N("c"), _N("d", defer=True)), ("a", "b"), joins=((("a", "b"), "d"),)
    ),
    "overwrite": GraphScript((_N("a", ("b", "c")), _N("b", overwrites=True), _N("c", ("d",)), _N("d")), ("a",)),
    "start router": GraphScript((_N("a"), _N("b")), (), start=_R("pick", ("a", "b"), fails=1)),
    "start sends": GraphScript((_N("a", ("b",)), _N("b")), ("b",), start=_R("fan", ("a",), 2)),
    "question": GraphScript((_N("a", ("b",)), _N("b", ("c",), questions=1), _N("c")), ("a",)),
    "two questions": GraphScript((_N("a", ("b",), questions=2, fails=1), _N("b")), ("a",)),
    "questions side by side": GraphScript(
        (_N("a", ("d",), questions=1), _N("b", questions=2), _N("c", fails=1), _N("d", questions=1)), ("a", "b", "c")
    ),
    "questions of sends": GraphScript(
        (_N("a", router=_R("fan", ("b",), 3)), _N("b", ("c",), questions=1, fails=1), _N("c")), ("a",)
    ),
    "question of a router": GraphScript((_N("a", router=_R("pick", ("b", "c"), asks=True)), _N("b"), _N("c")), ("a",)),
    "failures side by side": GraphScript(
        (_N("a", ("d",), fails=2), _N("b", fails=1), _N("c"), _N("d")), ("a", "b", "c")
    ),
    "failing routers": GraphScript(
        (_N("a", router=_R("pick", ("c",), fails=2)), _N("b", router=_R("fan", ("c",), 2, fails=1)), _N("c")),
        ("a", "b"),
    ),
}
"""Shapes that each showed a fault in some engine, by name."""


def graph_scripts(*, max_nodes: int = 5, questions: bool = True, failures: bool = True) -> SearchStrategy[GraphScript]:
    """Return a strategy of graphs with edges, joins, routers, sends, jumps, loops and deferred nodes; with nodes that
    ask and fail where that is wanted."""
    from hypothesis import strategies as st

    @st.composite
    def build(draw: Callable[[Any], Any]) -> GraphScript:
        return _Drawing(draw, st, questions, failures).graph(max_nodes)

    return build()


class _Drawing:
    """One random graph: every choice is drawn, so that hypothesis can take it back."""

    def __init__(self, draw: Callable[[Any], Any], st: Any, questions: bool, failures: bool) -> None:
        self.draw, self.st = draw, st
        self.asked = (0, 0, 0, 1, 2) if questions else (0,)
        self.fails = (0, 0, 0, 1, 2) if failures else (0,)

    def graph(self, max_nodes: int) -> GraphScript:
        names = "abcdefgh"[: self.draw(self.st.integers(1, max_nodes))]
        nodes = tuple(self._node(names, i) for i in range(len(names)))
        joins = tuple(join for i in range(2, len(names)) for join in self._join(names, i))
        start = self._router(names, "") if self._one(False, False, False, True) else None
        reached = _targets(nodes, joins, start)
        entry = tuple(name for name in names if name not in reached or (name == names[0] and start is None))
        return GraphScript(nodes, entry, joins, start)

    def _one(self, *among: Any) -> Any:
        return self.draw(self.st.sampled_from(among))

    def _some(self, among: str, least: int = 0, most: int = 2) -> tuple[str, ...]:
        if not among:
            return ()
        chosen = self.draw(self.st.lists(self.st.sampled_from(among), min_size=least, max_size=most, unique=True))
        return tuple(sorted(chosen))

    def _node(self, names: str, i: int) -> NodeScript:
        later = names[i + 1 :]
        return NodeScript(
            names[i],
            to=self._some(later),
            goto=self._one(None, None, *later),
            router=self._router(later, names[: i + 1]),
            questions=self._one(*self.asked),
            fails=self._one(*self.fails),
            defer=self._one(False, False, True),
            is_async=self._one(False, True),
        )

    def _router(self, later: str, earlier: str) -> RouterScript | None:
        kind = self._one("", "", *(("pick", "fan") if later else ()), *(("again",) if earlier else ()))
        fails = self._one(*self.fails)
        if kind == "again":
            return RouterScript(kind, self._some(earlier, 1, 1), 9, fails)
        asks = self._one(*self.asked) == 2
        if kind == "fan":
            return RouterScript(kind, self._some(later, 1, 1), self._one(1, 2, 3), fails, asks)
        if kind == "pick":
            return RouterScript(kind, (*self._some(later, 1), *self._one((), (END,))), 0, fails, asks)
        return None

    def _join(self, names: str, target: int) -> Iterator[tuple[tuple[str, ...], str]]:
        if self._one(False, False, True):
            yield self._some(names[:target], 2, 3), names[target]


def _targets(nodes: Iterable[NodeScript], joins: Iterable[Any], start: RouterScript | None) -> set[str]:
    """Return the nodes that something leads to, other than a router that leads back."""
    reached = {target for _, target in joins} | set(start.to if start is not None else ())
    for node in nodes:
        reached |= set(node.to) | ({node.goto} if node.goto is not None else set())
        if node.router is not None and node.router.kind != "again":
            reached |= set(node.router.to)
    return reached
