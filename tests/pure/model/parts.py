"""Small plans, bases and outcomes, in one line each, for the tests of the pure superstep functions."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from stepwell.codec import Codec, Registry
from stepwell.graph.state_graph import StateGraph
from stepwell.graph.types import START, Command, Interrupt, Overwrite, Send
from stepwell.plan.compile import compile_plan
from stepwell.plan.tables import Plan
from stepwell.superstep.begin import initial_values
from stepwell.superstep.outcome import Interrupted, Question, Route, Succeeded
from stepwell.superstep.state import Base, Identity, Planned, State, Task, plan_tasks


class Notes(TypedDict, total=False):
    """A list that is appended to, a number that is added to, and a value that is replaced."""

    log: Annotated[list[str], operator.add]
    total: Annotated[int, operator.add]
    last: Any


def quiet(state: Any) -> None:
    """Do nothing: the pure layers never call a node."""


def plan_of(
    nodes: str = "abcd",
    edges: Iterable[str] = (),
    joins: Iterable[str] = (),
    defer: str = "",
    schema: Any = Notes,
    entry: str | None = None,
    **options: Any,
) -> Plan:
    """Compile one-letter nodes with edges like "ab" and joins like "abc" (a and b to c); START leads to `entry`."""
    graph = StateGraph(schema)
    for node in nodes:
        graph.add_node(node, quiet, defer=node in defer)
    for node in nodes if entry is None else entry:
        graph.add_edge(START, node)
    for edge in edges:
        graph.add_edge(edge[0], edge[1])
    for join in joins:
        graph.add_edge(list(join[:-1]), join[-1])
    return compile_plan(graph, **options)


def identity(checkpoint_id: str = "c1", version: str = "", thread_id: str = "t", graph_id: str = "g") -> Identity:
    """Return the identity of a base in the root namespace."""
    return Identity(graph_id, version, thread_id, "", checkpoint_id)


def pulls(*nodes: str) -> tuple[Planned, ...]:
    """Return what plans these nodes."""
    return tuple(map(Planned, nodes))


def sends(*nodes: str) -> tuple[Planned, ...]:
    """Return what plans one send to each node, its argument the node's name and place."""
    return tuple(Planned(node, i, f"{node}{i}") for i, node in enumerate(nodes))


def state_of(plan: Plan, planned: Sequence[Planned] = (), **values: Any) -> State:
    """Return a state at step 0 that plans this."""
    return State({**initial_values(plan), **values}, tuple(planned), step=0)


def base_of(plan: Plan, *planned: Planned, at: str = "c1", **values: Any) -> Base:
    """Return a base that plans this, with nothing recorded on it."""
    return Base(state_of(plan, planned, **values), identity(at))


def tasks_of(*planned: Planned, activations: Mapping[str, int] | None = None) -> tuple[Task, ...]:
    """Return the tasks of `next`."""
    return plan_tasks(State({}, planned, activations=activations or {}), identity())


def done(*writes: tuple[str, Any], to: Iterable[Route] = ()) -> Succeeded:
    """Return a success with these writes and routes."""
    return Succeeded(writes, tuple(to))


def asks(base: Base, index: int, *call_ids: str) -> Interrupted:
    """Record questions of a task on its base, each with its call id as the value; return them."""
    task = base.tasks[index]
    asked = Interrupted(tuple(Question(question_id(task, call), call, call) for call in call_ids))
    base.outcomes[index] = asked
    return asked


def question_id(task: Task, call_id: str) -> str:
    """Return an id that reads as one: 32 hex digits."""
    from stepwell.ids import interrupt_id

    return interrupt_id(task.id, call_id)


def codec_of(plan: Plan) -> Codec:
    """Return the codec that the engine makes for this plan."""
    return Codec(Registry.from_schemas(*plan.schemas).with_types(Send, Command, Interrupt, Overwrite))
