"""Why a graph is refused when it is compiled, and that a graph that could work is not."""

# mypy: disable-error-code="empty-body"

import functools
import operator
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest

from stepwell.errors import InvalidGraphError
from stepwell.graph import types as graph_types
from stepwell.graph.mentions import mentions
from stepwell.graph.policies import TimeoutPolicy
from stepwell.graph.state_graph import StateGraph
from stepwell.graph.types import END, START, Command, Send
from stepwell.plan.compile import compile_plan
from stepwell.plan.reach import unreachable


class State(TypedDict):
    a: int
    log: Annotated[list[str], operator.add]


def quiet(state: State) -> State:
    return state


def graph(*names: str) -> StateGraph[Any]:
    g: StateGraph[Any] = StateGraph(State)
    for name in names:
        g.add_node(name, quiet)
    return g


def refusal(g: StateGraph[Any], **options: Any) -> str:
    with pytest.raises(InvalidGraphError) as caught:
        compile_plan(g, **options)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def test_an_edge_from_an_unknown_node_is_named() -> None:
    text = refusal(graph("x").add_edge(START, "x").add_edge("unknown", "x"))
    assert text.startswith("Found edge starting at unknown node 'unknown'")
    assert text.endswith("Nodes: x.")


def test_a_router_of_an_unknown_node_is_named() -> None:
    g = graph("x").add_edge(START, "x").add_conditional_edges("unknown", lambda state: "x")
    assert refusal(g).startswith("Found edge starting at unknown node 'unknown'")


def test_an_edge_to_an_unknown_node_is_named() -> None:
    assert refusal(graph("x").add_edge(START, "y")).startswith("Found edge ending at unknown node `y`")


def test_a_path_map_to_an_unknown_node_is_named() -> None:
    g = graph("a").add_edge(START, "a").add_conditional_edges("a", lambda state: 1, {1: "b"})
    assert refusal(g).startswith("At 'a' node, 'condition' branch found unknown target 'b'")


def test_a_literal_hint_to_an_unknown_node_is_named() -> None:
    def route(state: State) -> Literal["b"]: ...

    g = graph("a").add_edge(START, "a").add_conditional_edges("a", route)
    assert refusal(g).startswith("At 'a' node, 'route' branch found unknown target 'b'")


def test_a_declared_jump_to_an_unknown_node_is_named() -> None:
    def jump(state: State) -> Command[Literal["nowhere"]]: ...

    assert "unknown node `nowhere`" in refusal(graph().add_node(jump).add_edge(START, "jump"))
    g = graph().add_node("n", quiet, destinations=["nowhere"]).add_edge(START, "n")
    assert "unknown node `nowhere`" in refusal(g)


def test_a_graph_needs_an_entry() -> None:
    assert refusal(graph("x")) == ("Graph must have an entrypoint: add at least one edge from START to another node")
    assert refusal(graph("x", "y").add_edge("x", "y")).startswith("Graph must have an entrypoint")


def test_breakpoints_must_be_nodes() -> None:
    g = graph("x").add_edge(START, "x")
    assert refusal(g, interrupt_before=["y"]).startswith("Interrupt node `y` not found")
    assert refusal(g, interrupt_after=["x", "z"]).startswith("Interrupt node `z` not found")
    with pytest.raises(InvalidGraphError, match="Interrupt node `y` not found"):
        g.validate(interrupt=["y"])


def test_a_sync_node_has_no_idle_timeout() -> None:
    g = graph().add_node("slow", quiet, timeout=TimeoutPolicy(idle_timeout=1)).add_edge(START, "slow")
    text = refusal(g)
    assert "only supported for async nodes" in text
    assert "'slow' is sync" in text


def test_a_node_nothing_leads_to_is_named() -> None:
    text = refusal(graph("x", "lost", "found").add_edge(START, "x").add_edge("lost", "found"))
    assert text.startswith("Nothing leads to node `lost`, `found`.")
    assert "destinations=" in text


def test_a_loop_that_nothing_enters_is_named() -> None:
    g = graph("x", "l1", "l2").add_edge(START, "x").add_edge("l1", "l2").add_edge("l2", "l1")
    assert unreachable(g) == ["l1", "l2"]


def test_edges_joins_maps_hints_and_destinations_lead_to_nodes() -> None:
    def jump(state: State) -> Command[Literal["hinted"]]: ...

    g = graph("x", "y", "joined", "mapped", "hinted", "declared").add_node("jump", jump)
    g.add_node("points", quiet, destinations=("declared",))
    g.add_edge(START, "x").add_edge(START, "y").add_edge(["x", "y"], "joined")
    g.add_conditional_edges("joined", lambda state: 1, {1: "mapped"})
    g.add_edge("mapped", "jump").add_edge("hinted", "points")
    assert unreachable(g) == []


def test_a_router_without_a_map_may_lead_anywhere() -> None:
    g = graph("x", "y").add_edge(START, "x").add_conditional_edges("x", lambda state: "y")
    assert unreachable(g) == []


def test_a_router_that_nothing_reaches_leads_nowhere() -> None:
    g = graph("x", "y", "z").add_edge(START, "x").add_conditional_edges("y", lambda state: "z")
    assert unreachable(g) == ["y", "z"]


def test_a_mapped_router_that_makes_sends_may_lead_anywhere() -> None:
    g = graph("x", "y").add_edge(START, "x")
    g.add_conditional_edges("x", lambda state: [Send("y", state)], {1: END})
    assert unreachable(g) == []


def jump_to(name: str) -> Command[str]:
    return Command(goto=name)


def by_helper(state: State) -> Any:
    return jump_to("y")


def by_module(state: State) -> Any:
    return graph_types.Command(goto="y")


def by_nested(state: State) -> Any:
    makers: list[Callable[[], Command[str]]] = [lambda: Command(goto="y")]
    return [make() for make in makers]


class Jumper:
    def __call__(self, state: State) -> Any:
        return self.go()

    def go(self) -> Any:
        return Command(goto="y")


def by_closure() -> Callable[[State], Any]:
    made = Command(goto="y")

    def jump(state: State) -> Any:
        return made if state else None

    return jump


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(state: State) -> Any:
        return function(state)

    return call


class Compiled:
    plan: Any = None

    def invoke(self, input: Any, config: Any = None) -> Any: ...

    async def ainvoke(self, input: Any, config: Any = None) -> Any: ...


def calls_a_graph() -> Callable[[State], Any]:
    child = Compiled()

    def run(state: State) -> Any:
        return child.invoke(state)

    return run


@pytest.mark.parametrize(
    "jump",
    [
        lambda state: Command(goto="y"),
        by_helper,
        by_module,
        by_nested,
        Jumper(),
        Jumper().__call__,
        by_closure(),
        decorated(by_helper),
        functools.partial(by_helper),
        functools.partial(lambda make, state: make("y"), jump_to),
        Compiled(),
        calls_a_graph(),
        len,
    ],
)
def test_a_node_that_may_jump_may_lead_anywhere(jump: Any) -> None:
    g = graph("y").add_node("x", jump).add_edge(START, "x")
    assert unreachable(g) == []


def test_code_that_makes_no_command_is_found_free_of_it() -> None:
    class Quiet:
        def __call__(self, state: State) -> Any:
            return self.step(state)

        def step(self, state: State) -> Any:
            return quiet(state)

    for code in (quiet, Quiet(), Quiet().step, functools.partial(quiet), lambda state: {"a": max(state["a"], 1)}):
        assert not mentions(code, Command)


def test_the_first_reason_wins_and_a_valid_graph_passes() -> None:
    g = graph("x").add_edge("unknown", "nowhere")
    assert refusal(g).startswith("Found edge starting at unknown node")
    assert graph("x").add_edge(START, "x").validate() is not None
