"""Beginning: an input plans START, a command from outside adds to what is planned, a return value becomes writes."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from stepwell.errors import InvalidUpdateError, ParentCommand
from stepwell.graph.messages import MessagesState
from stepwell.graph.types import END, MISSING, START, Command, Send
from stepwell.plan.tables import Plan
from stepwell.superstep.begin import commanded, empty_state, input_state, start_outcome
from stepwell.superstep.merge import merge
from stepwell.superstep.outcome import Returned, Succeeded, goto_of, returned, summary
from stepwell.superstep.state import Base, Planned, State
from tests.pure.model.parts import base_of, done, identity, plan_of, pulls, sends, state_of


def no_id() -> str:
    raise AssertionError("no id was needed")


def made_by(plan: Plan, value: Any, task_id: Callable[[], str] = no_id) -> Returned:
    """Return what it means that node `a` returned this."""
    return returned(plan, plan.nodes["a"], value, task_id)


# -- an input ---------------------------------------------------------------------------------------------------------


def test_before_the_first_input_channels_have_their_initial_values() -> None:
    state = empty_state(plan_of())
    assert (state.values, state.next, state.step) == ({"log": [], "total": 0}, (), -2)


def test_an_input_plans_start_with_the_raw_input_and_changes_no_value() -> None:
    raw = {"log": ["x"], "unknown": 1}
    state = input_state(empty_state(plan_of()), raw)
    assert state.next == (Planned(START, None, raw),)
    assert (state.step, state.values) == (-1, {"log": [], "total": 0})


def test_a_new_input_counts_what_it_abandons_and_forgets_who_had_arrived() -> None:
    """INV-6: the abandoned activations are used up, so nothing recorded on them can answer a later task."""
    plan = plan_of(joins=["abc"], defer="c")
    base = base_of(plan, *sends("a", "a"), *pulls("b"))
    old = base.state._replace(
        activations={"a": 1, "b": 4}, barriers={"join:a+b:c": frozenset("a")}, deferred=frozenset("c"), step=6
    )
    state = input_state(old, {}, base.tasks)
    assert state.activations == {"a": 3, "b": 5}
    assert (state.barriers, state.deferred, state.step) == ({}, frozenset(), 7)


def test_start_writes_the_input_and_leads_to_the_entry() -> None:
    plan = plan_of(entry="ab", edges=["bc", "cd"])
    made = start_outcome(plan, {"log": ["x"], "unknown": 1}, no_id)
    assert made[:2] == ((("log", ["x"]),), ("a", "b"))
    state = input_state(empty_state(plan), {"log": ["x"]})
    base = Base(state, identity())
    routed = merge(plan, state, base.tasks, [Succeeded(*made)]).state
    assert (routed.step, routed.next, routed.values["log"]) == (0, pulls("a", "b"), ["x"])


@pytest.mark.parametrize("raw", [3, "text", ["a"], [("log", 1, 2)]])
def test_an_input_that_is_no_update_is_refused(raw: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="Expected the input to be a dict"):
        start_outcome(plan_of(), raw, no_id)


def test_a_command_as_first_input_is_what_start_returned() -> None:
    plan = plan_of(entry="a", edges=["ab", "bc", "cd"])
    made = start_outcome(plan, Command(update={"total": 1}, goto="c"), no_id)
    assert made[:2] == ((("total", 1),), ("c", "a"))


def test_an_input_into_a_state_without_keys_is_the_value() -> None:
    plan = plan_of("a", schema=list)
    assert start_outcome(plan, [1], no_id).writes == (("__root__", [1]),)
    assert start_outcome(plan, None, no_id).writes == ()


# -- a command from outside -------------------------------------------------------------------------------------------


def told(plan: Any, state: State, command: Command[Any]) -> State:
    return commanded(plan, Base(state, identity()), command, identity("c2")).state


def test_a_command_updates_the_state_and_keeps_what_is_planned() -> None:
    plan = plan_of()
    before = state_of(plan, (*sends("a"), *pulls("b")), total=1)._replace(activations={"b": 2}, writers=("z",))
    after = told(plan, before, Command(update={"total": 4}))
    assert (after.next, after.values["total"]) == (before.next, 5)
    assert (after.activations, after.writers, after.step) == ({"b": 2}, ("z",), before.step + 1)


def test_its_jumps_are_planned_beside_what_is_planned_each_node_once() -> None:
    plan = plan_of()
    before = state_of(plan, (*sends("a"), *pulls("d", "b")))
    after = told(plan, before, Command(goto=[Send("c", 7), "b", "a", END]))
    assert after.next == (Planned("a", 0, "a0"), Planned("c", 1, 7), *pulls("a", "b", "d"))


def test_it_leaves_barriers_as_they_are() -> None:
    plan = plan_of(joins=["abc"])
    before = state_of(plan, pulls("b"))._replace(barriers={"join:a+b:c": frozenset("a")})
    assert told(plan, before, Command(goto="d")).barriers == before.barriers


def test_it_does_not_wake_what_is_deferred_while_something_is_planned() -> None:
    """A deferred node runs when nothing else would, whoever speaks meanwhile."""
    plan = plan_of(defer="d")
    before = state_of(plan, pulls("a"))._replace(deferred=frozenset("d"))
    for command in (Command(update={"total": 1}), Command(goto="b"), Command(goto="d")):
        after = told(plan, before, command)
        assert "d" not in [planned.node for planned in after.next]
        assert after.deferred == {"d"}


def test_a_jump_to_a_deferred_node_waits_for_what_is_planned() -> None:
    plan = plan_of(defer="d")
    after = told(plan, state_of(plan, pulls("a")), Command(goto="d"))
    assert (after.next, after.deferred) == (pulls("a"), frozenset("d"))


def test_a_jump_to_a_deferred_node_runs_it_where_nothing_is_planned() -> None:
    plan = plan_of(defer="d")
    after = told(plan, state_of(plan), Command(goto="d"))
    assert (after.next, after.deferred) == (pulls("d"), frozenset())


# -- a return value ---------------------------------------------------------------------------------------------------


@dataclass
class Point:
    total: int
    last: str = "default"


class Model(BaseModel):
    total: int = 0
    last: str | None = None


@pytest.mark.parametrize(
    ("value", "writes"),
    [
        (None, ()),
        ({}, ()),
        ({"total": 1, "unknown": 2}, (("total", 1),)),
        ([("total", 1), ("total", 2)], (("total", 1), ("total", 2))),
        (Point(3), (("total", 3), ("last", "default"))),
        (Model(last="x"), (("total", 0), ("last", "x"))),
        (Command(update={"total": 1}), (("total", 1),)),
        ([{"total": 1}, Command(update={"total": 2}), None], (("total", 1), ("total", 2))),
    ],
)
def test_what_a_node_returns_becomes_writes(value: Any, writes: Any) -> None:
    assert made_by(plan_of(), value, no_id).writes == writes


@pytest.mark.parametrize("value", [1, "text", {1, 2}, [1, 2], (("a",),)])
def test_what_is_no_update_is_refused(value: Any) -> None:
    with pytest.raises(InvalidUpdateError, match="Expected dict, got"):
        made_by(plan_of(), value, no_id)


def test_jumps_add_to_static_edges_and_come_first() -> None:
    plan = plan_of(edges=["ab"])
    assert made_by(plan, Command(goto="c"), no_id).routes == ("c", "b")
    both = [Command(goto=[Send("d", 1), "c"]), Command(goto=END)]
    assert [way for way in made_by(plan, both).routes if way != END] == [Send("d", 1), "c", "b"]
    assert made_by(plan, {"total": 1}, no_id).routes == ("b",)


def test_a_command_for_a_parent_graph_is_refused_where_there_is_none() -> None:
    command = Command(graph=Command.PARENT, goto="a")
    with pytest.raises(InvalidUpdateError, match="no parent graph") as raised:
        goto_of(command)
    assert isinstance(raised.value, ParentCommand)
    assert raised.value.args == (command,), "where LangGraph's users look for it"
    copied = pickle.loads(pickle.dumps(raised.value))
    assert (copied.args, str(copied)) == (raised.value.args, str(raised.value))


def test_invented_message_ids_come_from_the_task_and_the_place() -> None:
    """INV-5: the same task makes the same ids again, another task others."""
    plan = plan_of("a", schema=MessagesState)
    value = {"messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": "ho", "id": "mine"}]}

    def ids(task_id: str) -> list[str]:
        (write,) = made_by(plan, value, lambda: task_id).writes
        return [m["id"] if isinstance(m, dict) else m.id for m in write[1]]

    assert ids("t1") == ids("t1")
    assert ids("t1")[1] == "mine"
    assert ids("t1")[0] != ids("t2")[0]


def test_a_summary_folds_repeated_channels() -> None:
    assert summary([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    assert summary([("a", 1), ("a", 2), ("a", 3)]) == {"a": {"$writes": [1, 2, 3]}}
    assert summary([("__root__", 7)]) == 7
    assert summary([]) is None


def test_an_update_by_none_writes_nothing_where_missing_is_not_none() -> None:
    assert made_by(plan_of(), {"last": None}, no_id).writes == (("last", None),)
    assert Command().resume is MISSING
    assert done(to=["a"]).routes == ("a",)
