"""`StateGraph`: what its methods accept, and the mistakes each of them names on the spot."""

# mypy: disable-error-code="empty-body"

import enum
import functools
import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest

from stepwell.errors import InvalidGraphError
from stepwell.graph.channels import BinaryOperatorAggregate, EphemeralValue
from stepwell.graph.managed import RemainingSteps
from stepwell.graph.policies import RetryPolicy, TimeoutPolicy
from stepwell.graph.state_graph import StateGraph
from stepwell.graph.types import END, START, Command, Send


class State(TypedDict):
    a: int
    log: Annotated[list[str], operator.add]


class Private(TypedDict):
    secret: str


def node(state: State) -> State:
    return state


def graph() -> StateGraph[Any]:
    return StateGraph(State)


def test_every_method_returns_the_graph() -> None:
    g = graph()
    assert g.add_node(node) is g
    assert g.add_edge(START, "node") is g
    assert g.add_conditional_edges("node", lambda state: END) is g
    assert g.add_sequence([("x", node)]) is g
    assert g.set_entry_point("x").set_finish_point("x").set_conditional_entry_point(lambda state: "x") is g


def test_a_node_is_added_by_name_or_under_its_own_name() -> None:
    class Worker:
        def __call__(self, state: State) -> State:
            return state

    g = graph().add_node("given", node).add_node(node).add_node(Worker()).add_node("part", functools.partial(node))
    assert list(g.nodes) == ["given", "node", "Worker", "part"]
    assert g.nodes["given"].code.call is node


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(InvalidGraphError, match="Node name must be provided"):
        graph().add_node(lambda state: state)
    with pytest.raises(InvalidGraphError, match="Node name must be provided"):
        graph().add_sequence([lambda state: state])
    assert list(graph().add_node("named", lambda state: state).nodes) == ["named"]


def test_enum_members_are_names_everywhere() -> None:
    class Name(str, enum.Enum):  # noqa: UP042
        ONE = "one"
        TWO = "two"

    g = graph().add_node(Name.ONE, node).add_node(Name.TWO, node)
    g.add_edge(START, Name.ONE).add_edge([Name.ONE, Name.TWO], Name.TWO).add_conditional_edges(
        Name.ONE, lambda state: 1, {1: Name.TWO}
    )
    assert all(type(name) is str for name in g.nodes)
    assert list(g.edges) == [(START, "one")]
    assert list(g.waiting_edges) == [(("one", "two"), "two")]
    assert g.branches["one"]["condition"].path_map == {1: "two"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (START, "Node `__start__` is reserved."),
        (END, "Node `__end__` is reserved."),
        ("a|b", r"'\|' is a reserved character and is not allowed in the node names."),
        ("a:b", "':' is a reserved character and is not allowed in the node names."),
        ("", "must not be empty"),
        ("node", "Node `node` already present."),
    ],
)
def test_node_names_that_cannot_be_used_are_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        graph().add_node(node).add_node(name, node)


def test_wrong_python_types_are_type_errors() -> None:
    calls: list[Callable[[], Any]] = [
        lambda: graph().add_node(3, node),
        lambda: graph().add_node("n", 3),
        lambda: graph().add_edge(3, "n"),  # type: ignore[arg-type]
        lambda: graph().add_node("n", node, destinations="x"),
        lambda: graph().add_node("n", node, retry_policy=[3]),  # type: ignore[list-item]
        lambda: graph().add_node("n", node, cache=True),  # type: ignore[call-arg]
        lambda: graph().add_conditional_edges("n", node, "x"),
        lambda: StateGraph({"a": int}),
    ]
    for wrong in calls:
        with pytest.raises(TypeError):
            wrong()


def test_a_node_without_an_action_is_refused() -> None:
    with pytest.raises(InvalidGraphError, match="Node `n` has no action"):
        graph().add_node("n")


def test_a_refused_node_leaves_no_trace() -> None:
    class Clashing(TypedDict):
        log: Annotated[list[str], operator.or_]
        more: int

    g = graph()
    with pytest.raises(InvalidGraphError):
        g.add_node("n", node, input_schema=Clashing)
    assert list(g.nodes) == []
    assert list(g.channels) == ["a", "log"]


def test_the_first_parameter_says_what_a_node_reads() -> None:
    def reads_private(state: Private) -> State: ...

    def reads_plain(state: dict[str, Any]) -> State: ...

    class Method:
        def __call__(self, state: Private) -> State: ...

    g = graph().add_node(reads_private).add_node(reads_plain).add_node(Method()).add_node(node)
    g.add_node("given", reads_plain, input_schema=Private)
    assert [spec.input_schema for spec in g.nodes.values()] == [Private, State, Private, State, Private]
    assert "secret" in g.channels


def test_return_hints_say_where_a_node_may_jump() -> None:
    def one(state: State) -> Command[Literal["x", "__end__"]]: ...

    def many(state: State) -> State | list[Command[Literal["x"]] | Command[Literal["y"]]] | None: ...

    def anywhere(state: State) -> Command[str]: ...

    g = graph().add_node(one).add_node(many).add_node(anywhere).add_node(node)
    assert [list(spec.ends) for spec in g.nodes.values()] == [["x", "__end__"], ["x", "y"], [], []]


def test_destinations_take_the_place_of_the_hint_and_may_have_labels() -> None:
    def hinted(state: State) -> Command[Literal["x"]]: ...

    g = graph().add_node("a", hinted, destinations=("y", "z")).add_node("b", hinted, destinations={"y": "why"})
    assert g.nodes["a"].ends == {"y": None, "z": None}
    assert g.nodes["b"].ends == {"y": "why"}


def test_node_options_are_kept() -> None:
    policy = RetryPolicy(max_attempts=7)
    g = graph().add_node("n", node, retry_policy=policy, timeout=3, defer=True, metadata={"k": 1}, goto="replace")
    spec = g.nodes["n"]
    assert (spec.retry, spec.timeout, spec.defer, spec.metadata, spec.goto) == (
        (policy,),
        TimeoutPolicy(3.0),
        True,
        {"k": 1},
        "replace",
    )
    assert graph().add_node("n", node, retry_policy=[policy, policy]).nodes["n"].retry == (policy, policy)


def test_N5_whether_a_jump_adds_or_replaces_is_declared() -> None:
    assert graph().add_node(node).nodes["node"].goto == "add"
    with pytest.raises(InvalidGraphError, match="goto of node `n` must be 'add' or 'replace', not 'both'"):
        graph().add_node("n", node, goto="both")  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", [0, -1, TimeoutPolicy(run_timeout=-1)])
def test_a_timeout_that_is_not_positive_is_refused_with_the_node(timeout: Any) -> None:
    with pytest.raises(ValueError, match="run_timeout must be greater than 0"):
        graph().add_node("n", node, timeout=timeout)


def test_edges_from_end_and_to_start_are_refused() -> None:
    g = graph().add_node(node)
    with pytest.raises(ValueError, match="END cannot be a start node"):
        g.add_edge(END, "node")
    with pytest.raises(ValueError, match="START cannot be an end node"):
        g.add_edge("node", START)
    with pytest.raises(ValueError, match="END cannot be a start node"):
        g.add_edge([END, "node"], "node")
    with pytest.raises(ValueError, match="START cannot be an end node"):
        g.add_edge(["node"], START)
    with pytest.raises(ValueError, match="END cannot be a start node"):
        g.add_conditional_edges(END, lambda state: "node")


def test_an_edge_may_be_added_before_its_nodes_and_twice() -> None:
    g = graph().add_edge(START, "node").add_edge(START, "node").add_node(node)
    assert list(g.edges) == [(START, "node")]


def test_a_join_needs_its_nodes_first() -> None:
    g = graph().add_node(node)
    with pytest.raises(ValueError, match="Need to add_node `other` first"):
        g.add_edge(["node", "other"], "node")
    with pytest.raises(ValueError, match="Need to add_node `target` first"):
        g.add_edge(["node"], "target")
    with pytest.raises(ValueError, match="Need to add_node `__start__` first"):
        g.add_edge([START, "node"], "node")


def test_a_join_of_nothing_or_of_a_node_twice_is_refused() -> None:
    g = graph().add_node(node)
    with pytest.raises(InvalidGraphError, match="A join to `node` needs at least one node to wait for"):
        g.add_edge([], "node")
    with pytest.raises(InvalidGraphError, match="names a node twice"):
        g.add_edge(["node", "node"], "node")


def test_a_join_of_one_node_is_an_edge() -> None:
    g = graph().add_node(node).add_edge(["node"], END)
    assert list(g.edges) == [("node", END)]
    assert not g.waiting_edges


def test_routers_are_named_by_their_function_and_once_for_a_node() -> None:
    def route(state: State) -> str:
        return "node"

    g = graph().add_node(node).add_conditional_edges("node", route).add_conditional_edges("node", lambda state: END)
    assert list(g.branches["node"]) == ["route", "condition"]
    with pytest.raises(ValueError, match="Branch with name `route` already exists for node `node`"):
        g.add_conditional_edges("node", route)
    with pytest.raises(ValueError, match="Branch with name `condition` already exists"):
        g.add_conditional_edges("node", lambda state: END)


def test_a_path_map_is_a_dict_a_list_or_a_literal_hint() -> None:
    def hinted(state: State) -> Literal["x", "__end__"]: ...

    def sends(state: State) -> Literal["x"] | Send: ...

    g = graph()
    g.add_conditional_edges("a", hinted).add_conditional_edges("b", hinted, {True: "y"})
    g.add_conditional_edges("c", hinted, ["y", END]).add_conditional_edges("d", sends)
    maps = [branch.path_map for branches in g.branches.values() for branch in branches.values()]
    assert maps == [{"x": "x", END: END}, {True: "y"}, {"y": "y", END: END}, None]
    with pytest.raises(InvalidGraphError, match="names a node twice"):
        g.add_conditional_edges("e", hinted, ["y", "y"])


def test_a_router_reads_what_its_first_parameter_is_annotated_with() -> None:
    def route(state: Private) -> str: ...

    g = graph().add_conditional_edges("node", route)
    assert g.branches["node"]["route"].input_schema is Private
    assert "secret" in g.channels


def test_a_router_that_cannot_be_called_is_named() -> None:
    with pytest.raises(InvalidGraphError, match="The router `route` of node `node` has a parameter `other`"):

        def route(state: State, other: int) -> str: ...

        graph().add_conditional_edges("node", route)


def test_a_sequence_is_nodes_and_edges() -> None:
    g = graph().add_sequence([("x", node), node, ("y", lambda state: state)])
    assert list(g.nodes) == ["x", "node", "y"]
    assert list(g.edges) == [("x", "node"), ("node", "y")]
    with pytest.raises(ValueError, match="Sequence requires at least one node"):
        graph().add_sequence([])
    with pytest.raises(ValueError, match="Node names must be unique: node with the name 'node' already exists"):
        graph().add_sequence([node, node])


def test_keys_of_all_schemas_are_channels_and_a_plain_annotation_gives_way() -> None:
    class Input(TypedDict):
        log: list[str]
        question: str

    g = StateGraph(State, input_schema=Input, output_schema=Private)
    assert list(g.channels) == ["a", "log", "question", "secret"]
    assert isinstance(g.channels["log"], BinaryOperatorAggregate)


def test_schemas_that_do_not_agree_on_a_key_are_refused() -> None:
    class Other(TypedDict):
        log: Annotated[list[str], operator.or_]

    class Reduced(TypedDict):
        a: Annotated[int, operator.add]

    class Ephemeral(TypedDict):
        log: Annotated[list[str], EphemeralValue]

    for clashing, key in ((Other, "log"), (Reduced, "a"), (Ephemeral, "log")):
        with pytest.raises(ValueError, match=f"Channel '{key}' already exists with a different type"):
            StateGraph(State, input_schema=clashing)


def test_managed_keys_belong_to_the_state_only() -> None:
    class Managed(TypedDict):
        a: int
        left: RemainingSteps

    class Clashing(TypedDict):
        left: int

    assert StateGraph(Managed).managed == {"left": "remaining_steps"}
    with pytest.raises(ValueError, match=r"Invalid managed channels detected in .*Managed: left"):
        StateGraph(State, input_schema=Managed)
    with pytest.raises(InvalidGraphError, match="Channel 'left' already exists with a different type"):
        StateGraph(Managed, input_schema=Clashing)


def test_reserved_keys_are_refused() -> None:
    Reserved = TypedDict("Reserved", {"__interrupt__": int})
    with pytest.raises(InvalidGraphError, match="Channel name '__interrupt__' is reserved"):
        StateGraph(Reserved)


def test_a_bad_reducer_is_refused_with_the_schema() -> None:
    class Bad(TypedDict):
        a: Annotated[str, lambda value: value]

    with pytest.raises(ValueError, match="Invalid reducer"):
        StateGraph(Bad)


def test_any_kind_of_schema_can_be_a_state() -> None:
    @dataclass
    class Data:
        a: int = 0

    assert list(StateGraph(Data).channels) == ["a"]
    assert list(StateGraph(Annotated[list[str], operator.add]).channels) == ["__root__"]
    assert StateGraph[State](State).state_schema is State


def test_what_is_added_after_compiling_is_warned_about() -> None:
    g = graph().add_node(node).add_edge(START, "node")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g.validate()
        g.add_edge("node", END)
    g.compiled = True
    with pytest.warns(UserWarning, match="already been compiled: this node"):
        g.add_node("late", node)
