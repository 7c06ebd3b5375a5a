"""Plans: what the compiler makes of a graph, and when two graphs have the same fingerprint."""

# mypy: disable-error-code="empty-body"

import dataclasses
import enum
import itertools
import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest
from hypothesis import given, strategies as st

from stepwell.graph import state_graph
from stepwell.graph.channels import EphemeralValue, Topic
from stepwell.graph.managed import IsLastStep
from stepwell.graph.messages import MessagesState, add_messages
from stepwell.graph.policies import RetryPolicy, TimeoutPolicy
from stepwell.graph.state_graph import StateGraph, use_engine
from stepwell.graph.types import END, START, Send
from stepwell.plan.compile import compile_plan
from stepwell.plan.tables import Plan


class State(TypedDict):
    a: int
    log: Annotated[list[str], operator.add]


class Narrow(TypedDict):
    a: int


def quiet(state: State) -> State:
    return state


async def quiet_async(state: Narrow) -> State: ...


def route(state: Narrow) -> Literal["y", "__end__"]: ...


def graph() -> StateGraph[Any]:
    g: StateGraph[Any] = StateGraph(State, input_schema=Narrow)
    g.add_node("x", quiet).add_node("y", quiet_async).add_node("z", quiet, defer=True)
    g.add_edge(START, "x").add_edge("x", END).add_edge("x", "z").add_edge("x", "y").add_edge(["y", "x"], "z")
    g.add_conditional_edges("x", route).add_conditional_edges("y", lambda state: Send("z", state))
    return g


def test_nodes_have_their_code_what_they_read_and_where_they_lead() -> None:
    plan = compile_plan(graph())
    x, y = plan.nodes["x"], plan.nodes["y"]
    assert list(plan.nodes) == ["x", "y", "z"]
    assert (x.callee.call, x.callee.is_async, y.callee.is_async) == (quiet, False, True)
    assert (x.reads.name, y.reads.name) == (plan.state.name, plan.input.name)
    assert x.edges == ("z", "y")
    assert x.joins == y.joins == ("join:x+y:z",)
    assert plan.nodes["z"].joins == ()
    assert (x.defer, plan.nodes["z"].defer) == (False, True)


def test_routers_read_what_they_say_or_what_their_node_reads() -> None:
    plan = compile_plan(graph())
    (hinted,), (bare,) = plan.nodes["x"].branches, plan.nodes["y"].branches
    assert (hinted.name, hinted.path_map, hinted.reads.keys) == ("route", {"y": "y", END: END}, ("a",))
    assert (bare.name, bare.path_map, bare.reads.keys) == ("condition", None, ("a",))


def test_joins_have_their_sources_and_target() -> None:
    plan = compile_plan(graph())
    join = plan.joins["join:x+y:z"]
    assert (join.id, join.sources, join.target) == ("join:x+y:z", frozenset({"x", "y"}), "z")


def test_the_order_of_a_joins_sources_does_not_matter() -> None:
    g = graph().add_edge(["x", "y"], "z")
    assert list(compile_plan(g).joins) == ["join:x+y:z"]


def test_joins_to_end_release_nothing() -> None:
    plan = compile_plan(graph().add_edge(["x", "y"], END))
    assert list(plan.joins) == ["join:x+y:z"]


def test_start_maps_the_input_to_itself_and_leads_to_the_entry() -> None:
    plan = compile_plan(graph().set_conditional_entry_point(lambda state: "y"))
    assert (plan.start.name, plan.start.edges, plan.start.reads) == (START, ("x",), plan.input)
    assert plan.start.callee.call(value := {"a": 1}) is value
    assert [branch.reads for branch in plan.start.branches] == [plan.state]


def test_channels_managed_values_and_schemas_are_complete() -> None:
    class Everything(TypedDict):
        a: int
        once: Annotated[int, EphemeralValue]
        topic: Annotated[int, Topic]
        messages: Annotated[list[Any], add_messages]
        last: IsLastStep

    g: StateGraph[Any] = StateGraph(Everything, output_schema=MessagesState)
    plan = compile_plan(g.add_node("x", quiet_async).add_edge(START, "x"))
    assert list(plan.channels) == ["a", "once", "topic", "messages"]
    assert plan.managed == {"last": "is_last_step"}
    assert plan.settling == ("once", "topic")
    assert plan.inventive == {"messages"}
    assert plan.schemas == (Everything, MessagesState, Narrow)
    assert plan.state.whole
    assert not plan.output.whole


def test_options_of_a_node_reach_the_plan() -> None:
    policy = RetryPolicy(max_attempts=2)
    g: StateGraph[Any] = StateGraph(State, context_schema=Narrow)
    g.add_node("x", quiet, retry_policy=policy, timeout=5, metadata={"k": 1}, goto="replace").add_edge(START, "x")
    plan = compile_plan(g)
    x = plan.nodes["x"]
    assert (x.retry, x.timeout, x.metadata, x.goto_replaces, x.subgraph) == (
        (policy,),
        TimeoutPolicy(5.0),
        {"k": 1},
        True,
        None,
    )
    assert plan.context is Narrow


def test_a_compiled_graph_as_a_node_is_known_as_one() -> None:
    class Compiled:
        plan: Any = None

        def invoke(self, input: Any, config: Any = None) -> Any: ...

        async def ainvoke(self, input: Any, config: Any = None) -> Any: ...

    child = Compiled()
    plan = compile_plan(StateGraph(State).add_node("child", child).add_edge(START, "child"))
    node = plan.nodes["child"]
    assert node.subgraph is child
    assert (node.callee.call, node.callee.acall, node.callee.inject) == (child.invoke, child.ainvoke, ("config",))


def test_breakpoints_are_names_or_a_star_for_all() -> None:
    plan = compile_plan(graph(), interrupt_before="*", interrupt_after=["x"])
    assert (plan.interrupt_before, plan.interrupt_after) == (frozenset({"x", "y", "z"}), frozenset({"x"}))
    assert compile_plan(graph()).interrupt_before == frozenset()


def test_the_graph_id_is_the_name_or_the_schemas_qualified_name() -> None:
    assert compile_plan(graph(), name="mine").graph_id == "mine"
    assert compile_plan(graph()).graph_id == f"{__name__}.State"
    root: StateGraph[Any] = StateGraph(Annotated[list[str], operator.add])
    assert compile_plan(root.add_node("x", lambda state: state).add_edge(START, "x")).graph_id == "list[str]"


def test_the_version_is_recorded_as_given() -> None:
    assert compile_plan(graph(), version="7").version == "7"


def test_a_plan_does_not_follow_its_builder() -> None:
    g = graph()
    plan = compile_plan(g)
    before = (dict(plan.nodes), plan.fingerprint)
    g.add_node("late", quiet).add_edge("x", "late")
    assert (dict(plan.nodes), plan.fingerprint) == before
    for table in (plan.nodes, plan.channels, plan.joins, plan.managed):
        with pytest.raises(TypeError):
            table["new"] = None  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.version = "8"  # type: ignore[misc]


# -- fingerprints -----------------------------------------------------------------------------------------------------


def test_a_fingerprint_is_32_hex_digits_and_the_same_again() -> None:
    fingerprint = compile_plan(graph()).fingerprint
    assert len(fingerprint) == 32
    assert int(fingerprint, 16) >= 0
    assert compile_plan(graph()).fingerprint == fingerprint


def test_Q5_unrelated_code_does_not_change_the_fingerprint() -> None:
    def other(state: State) -> State:
        return {"a": 2, "log": []}

    def build(action: Any, **options: Any) -> str:
        g = StateGraph(State).add_node("x", action, **options).add_edge(START, "x")
        return compile_plan(g, name=str(options), version=str(options)).fingerprint

    assert build(quiet) == build(other, retry_policy=RetryPolicy(), timeout=1, metadata={"k": 1})


class Retyped(TypedDict):
    a: str
    log: Annotated[list[str], operator.add]


class Rereduced(TypedDict):
    a: int
    log: Annotated[list[str], operator.concat]


CHANGES: dict[str, Callable[[], StateGraph[Any]]] = {
    "nothing": graph,
    "a node": lambda: graph().add_node("new", quiet),
    "an edge": lambda: graph().add_edge("z", "y"),
    "a join": lambda: graph().add_edge(["y", "z"], "x"),
    "a router": lambda: graph().add_conditional_edges("z", route),
    "a router's map": lambda: graph().add_conditional_edges("z", route, {1: "y"}),
    "a router's results": lambda: graph().add_conditional_edges("z", route, {"1": "y"}),
    "an open router": lambda: graph().add_conditional_edges("z", lambda state: END),
    "an entry": lambda: graph().set_entry_point("y"),
    "deferral": lambda: graph().add_node("new", quiet, defer=True),
    "the mode of jumps": lambda: graph().add_node("new", quiet, goto="replace"),
    "a channel": lambda: StateGraph(Narrow).add_node("x", quiet_async).add_edge(START, "x"),
    "a type": lambda: StateGraph(Retyped).add_node("x", len).add_edge(START, "x"),
    "a reducer": lambda: StateGraph(Rereduced).add_node("x", len).add_edge(START, "x"),
}


def test_what_changes_the_meaning_of_a_thread_changes_the_fingerprint() -> None:
    prints = {what: compile_plan(build()).fingerprint for what, build in CHANGES.items()}
    same = [(a, b) for a, b in itertools.combinations(prints, 2) if prints[a] == prints[b]]
    assert same == []


names = st.permutations(["x", "y", "z"])


@given(names, st.permutations([("x", "y"), ("x", "z"), (START, "x"), ("y", END)]))
def test_the_order_of_adding_does_not_change_the_fingerprint(nodes: list[str], edges: list[tuple[str, str]]) -> None:
    def build(nodes: list[str], edges: list[tuple[str, str]]) -> str:
        g: StateGraph[Any] = StateGraph(State)
        for name in nodes:
            g.add_node(name, quiet)
        for start, end in edges:
            g.add_edge(start, end)
        return compile_plan(g).fingerprint

    assert build(nodes, edges) == build(sorted(nodes), sorted(edges))


def test_names_that_join_alike_have_different_fingerprints() -> None:
    def build(*nodes: str) -> str:
        g: StateGraph[Any] = StateGraph(State)
        for name in nodes:
            g.add_node(name, quiet).add_edge(START, name)
        return compile_plan(g).fingerprint

    assert build("ab", "c") != build("a", "bc")


def test_enum_results_of_a_router_have_a_stable_text() -> None:
    class Choice(enum.Enum):
        YES = 1
        NO = 2

    def build(yes: str, no: str) -> str:
        return compile_plan(graph().add_conditional_edges("z", route, {Choice.YES: yes, Choice.NO: no})).fingerprint

    assert build("x", "y") == build("x", "y")
    assert build("x", "y") != build("y", "x")


# -- handing over -----------------------------------------------------------------------------------------------------


def test_compile_hands_the_plan_to_the_registered_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_graph, "_registered", dict(state_graph._registered))
    seen: list[Any] = []

    def factory(builder: StateGraph[Any], plan: Plan, **options: Any) -> str:
        seen.extend((builder, plan, options))
        return "compiled"

    use_engine(factory)
    g = graph()
    assert g.compile("saver", store="items", interrupt_before=["x"], name="mine", version="2") == "compiled"
    builder, plan, options = seen
    assert builder is g
    assert (plan.graph_id, plan.version, plan.interrupt_before) == ("mine", "2", {"x"})
    given = {"checkpointer": "saver", "store": "items", "debug": False, "name": "mine"}
    assert options == {**given, "listeners": (), "events": False, "cache": None}
    assert g.compiled


def test_a_graph_that_is_refused_reaches_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_graph, "_registered", dict(state_graph._registered))
    use_engine(lambda builder, plan, **options: pytest.fail("called"))
    with pytest.raises(ValueError, match="Graph must have an entrypoint"):
        StateGraph(State).add_node("x", quiet).compile()
