"""Routing: which nodes follow, in which order, when joins are released and when deferred nodes wake."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from stepwell.errors import InvalidUpdateError
from stepwell.graph.policies import TimeoutPolicy
from stepwell.graph.types import END, Send
from stepwell.plan.tables import Plan
from stepwell.superstep.merge import branch_targets, merge, route
from stepwell.superstep.outcome import Route
from stepwell.superstep.state import Base, Planned, State
from tests.pure.model.parts import done, identity, plan_of, pulls, state_of

NOTHING: frozenset[str] = frozenset()


def follow(plan: Plan, routes: Sequence[Route], nodes: Sequence[str] = ()) -> tuple[Planned, ...]:
    return route(plan, {}, NOTHING, nodes, routes)[0]


def steps(plan: Plan, *first: str, edges: dict[str, Sequence[Route]] | None = None) -> list[str]:
    """Return which nodes ran in each superstep, following the plan's static edges, or `edges`."""
    state, ran = state_of(plan, pulls(*first)), []
    while state.next:
        base = Base(state, identity())
        ran.append("".join(task.node for task in base.tasks))
        ways = [plan.nodes[task.node].edges if edges is None else edges.get(task.node, ()) for task in base.tasks]
        state = merge(plan, state, base.tasks, [done(to=way) for way in ways]).state
        assert len(ran) < 20
    return ran


# -- next -------------------------------------------------------------------------------------------------------------


def test_sends_come_first_by_index_then_pulls_by_name() -> None:
    planned = follow(plan_of(), ["c", Send("b", 1), "a", Send("a", 2, timeout=3.0)])
    assert planned == (Planned("b", 0, 1), Planned("a", 1, 2, TimeoutPolicy(3.0)), Planned("a"), Planned("c"))


def test_many_ways_to_one_node_are_one_run_of_it() -> None:
    assert follow(plan_of(), ["a", "b", "a"]) == pulls("a", "b")
    assert follow(plan_of(), [Send("a", 1), Send("a", 1), "a"]) == (
        Planned("a", 0, 1),
        Planned("a", 1, 1),
        Planned("a"),
    )


@pytest.mark.parametrize("routes", [[], [END], [END, END]])
def test_no_way_on_is_the_end(routes: list[Route]) -> None:
    assert follow(plan_of(), routes) == ()


def test_the_end_of_one_branch_does_not_stop_another() -> None:
    assert follow(plan_of(), [END, "b"]) == pulls("b")


# -- joins ------------------------------------------------------------------------------------------------------------


def test_a_join_is_released_when_its_last_source_has_run() -> None:
    plan = plan_of("abcd", edges=["ab"], joins=["bcd"])
    assert steps(plan, "a", "c") == ["ac", "b", "d"]


def test_a_join_needs_all_its_sources() -> None:
    plan = plan_of("abcd", joins=["abd"])
    planned, barriers, _ = route(plan, {}, NOTHING, ["a"], [])
    assert (planned, barriers) == ((), {"join:a+b:d": frozenset("a")})


def test_a_source_that_runs_twice_counts_once_and_a_released_join_starts_anew() -> None:
    plan = plan_of("abcd", joins=["abd"])
    _, once, _ = route(plan, {}, NOTHING, ["a", "a"], ["c"])
    planned, released, _ = route(plan, once, NOTHING, ["b"], [])
    assert (planned, released) == (pulls("d"), {})
    assert route(plan, released, NOTHING, ["b"], [])[:2] == ((), {"join:a+b:d": frozenset("b")})


def test_two_joins_of_one_target_each_release_it() -> None:
    plan = plan_of("abcd", joins=["abd", "bcd"])
    planned, barriers, _ = route(plan, {}, NOTHING, ["a", "b"], [])
    assert (planned, barriers) == (pulls("d"), {"join:b+c:d": frozenset("b")})


def test_a_barrier_whose_join_is_gone_from_the_graph_holds_nobody_up() -> None:
    plan = plan_of("abcd", joins=["abd"])
    planned, barriers, _ = route(plan, {"join:x+y:z": frozenset("x")}, NOTHING, ["a"], ["c"])
    assert planned == pulls("c")
    assert barriers["join:x+y:z"] == frozenset("x")


def test_a_node_that_is_gone_from_the_graph_is_a_source_of_nothing() -> None:
    assert follow(plan_of("abcd", joins=["abd"]), ["c"], nodes=["gone"]) == pulls("c")


# -- deferred nodes ---------------------------------------------------------------------------------------------------


def test_a_deferred_node_waits_until_nothing_else_would_run() -> None:
    plan = plan_of("abcd", edges=["ad", "ab", "bc"], defer="d")
    assert steps(plan, "a") == ["a", "b", "c", "d"]


def test_deferred_nodes_wake_together_by_name() -> None:
    plan = plan_of("abcd", edges=["ad", "ab", "bc"], defer="cd")
    assert steps(plan, "a") == ["a", "b", "cd"]


def test_a_deferred_node_that_is_reached_alone_runs_at_once() -> None:
    assert steps(plan_of("ab", edges=["ab"], defer="b"), "a") == ["a", "b"]


def test_a_deferred_join_waits_for_its_sources_and_for_everybody_else() -> None:
    plan = plan_of("abcde", edges=["ce", "eb"], joins=["acd"], defer="d")
    assert steps(plan, "a", "c") == ["ac", "e", "b", "d"]


def test_an_unfilled_deferred_join_does_not_wake_with_the_others() -> None:
    plan = plan_of("abcd", edges=["ac"], joins=["abd"], defer="cd")
    planned, barriers, deferred = route(plan, {}, NOTHING, ["a"], ["c"])
    assert (planned, barriers, deferred) == (pulls("c"), {"join:a+b:d": frozenset("a")}, NOTHING)


def test_what_a_deferred_node_leads_to_runs_after_it() -> None:
    assert steps(plan_of("abcd", edges=["ab", "ac", "bd"], defer="b"), "a") == ["a", "c", "b", "d"]


def test_a_send_to_a_deferred_node_does_not_wait() -> None:
    plan = plan_of("abc", defer="c")
    assert follow(plan, [Send("c", 1), "b"]) == (Planned("c", 0, 1), Planned("b"))


@given(st.lists(st.sampled_from("abcd"), max_size=6), st.permutations("abcd"))
def test_the_order_of_pulls_in_routes_changes_nothing(routes: list[str], nodes: list[str]) -> None:
    """INV-5: where next, barriers and deferred nodes lead does not depend on who arrived first."""
    plan = plan_of("abcd", joins=["abd", "bca"], defer="c")
    assert route(plan, {}, NOTHING, nodes, routes) == route(plan, {}, NOTHING, sorted(nodes), sorted(routes))


# -- routers ----------------------------------------------------------------------------------------------------------

AB = plan_of("ab")


def test_a_router_names_nodes_sends_and_the_end_alone_or_in_a_list() -> None:
    send = Send("b", 1)
    assert branch_targets(AB, "a", None, "b") == ["b"]
    assert branch_targets(AB, "a", None, ["b", END, send]) == ["b", send]
    assert branch_targets(AB, "a", None, END) == []
    assert branch_targets(AB, "a", None, []) == []


def test_a_path_map_translates_results_of_any_type() -> None:
    assert branch_targets(AB, "a", {True: "b", None: END, 3: "a"}, [True, None, 3]) == ["b", "a"]


@pytest.mark.parametrize("result", [None, 7, "__start__", "elsewhere", Send("elsewhere", 1), Send(END, 1), ["a", None]])
@pytest.mark.parametrize("path_map", [None, {"x": "a"}])
def test_a_router_that_names_no_destination_is_refused_with_its_nodes_name(result: Any, path_map: Any) -> None:
    with pytest.raises(InvalidUpdateError) as raised:
        branch_targets(AB, "a", path_map, result)
    assert raised.value.fields()["node"] == "a"


def test_a_path_map_lets_end_through_and_no_other_unmapped_name() -> None:
    assert branch_targets(AB, "a", {"x": "b"}, END) == []
    refused = "did not return a valid destination: the router of 'a' returned 'b'. Its path map has 'x', True$"
    with pytest.raises(InvalidUpdateError, match=refused):
        branch_targets(AB, "a", {"x": "b", True: "a"}, "b")


def test_a_send_needs_no_entry_in_the_path_map() -> None:
    assert branch_targets(AB, "a", {"x": "b"}, Send("a", 1)) == [Send("a", 1)]


def test_a_send_with_an_idle_timeout_needs_an_async_node() -> None:
    with pytest.raises(InvalidUpdateError, match="only supported for async nodes") as raised:
        branch_targets(AB, "a", None, [Send("b", 1, timeout=TimeoutPolicy(idle_timeout=1))])
    assert raised.value.fields()["target"] == "b"


def test_an_unhashable_result_is_refused_like_any_other() -> None:
    with pytest.raises(InvalidUpdateError):
        branch_targets(AB, "a", {"x": "b"}, {"a": 1})


def test_a_state_without_next_stays_finished() -> None:
    plan = plan_of("a")
    assert merge(plan, State({}, pulls("a")), Base(State({}, pulls("a")), identity()).tasks, [done()]).state.next == ()
