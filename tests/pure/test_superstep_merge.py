"""Merging: parallel writes fold in one order, whoever finished first, and what cannot be folded is named."""

import itertools
import operator
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from stepwell.errors import InvalidUpdateError, MergeError, StateValidationError
from stepwell.graph.channels import AnyValue, EphemeralValue, LastValueAfterFinish, Topic
from stepwell.graph.types import Overwrite
from stepwell.superstep.merge import merge, view
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.state import State
from tests.pure.model.parts import base_of, done, plan_of, pulls, sends


def folded(plan: Any, base: Any, outcomes: Sequence[Succeeded]) -> State:
    return merge(plan, base.state, base.tasks, outcomes).state


# -- order ------------------------------------------------------------------------------------------------------------


def test_writes_fold_pulls_by_name_then_sends_by_index() -> None:
    """INV-5: the order of `next` is another one (sends first), and leaves no trace in the values."""
    plan = plan_of("abc")
    base = base_of(plan, *sends("c", "a"), *pulls("a", "b"))
    assert [task.node for task in base.tasks] == ["c", "a", "a", "b"]
    outcomes = [done(("log", ["send 0"])), done(("log", ["send 1"])), done(("log", ["a"])), done(("log", ["b"]))]
    assert folded(plan, base, outcomes).values["log"] == ["a", "b", "send 0", "send 1"]


def test_names_order_by_text_and_sends_by_number() -> None:
    plan = plan_of("aB")
    base = base_of(plan, *sends(*"a" * 11), *pulls("B", "a"))
    outcomes = [done(("log", [str(i)])) for i in range(11)] + [done(("log", ["B"])), done(("log", ["a"]))]
    assert folded(plan, base, outcomes).values["log"] == ["B", "a", *map(str, range(11))]


@given(st.permutations(range(4)), st.lists(st.text(max_size=2), min_size=4, max_size=4))
def test_any_order_of_planning_gives_the_same_values(order: list[int], words: list[str]) -> None:
    """INV-5: a reducer that does not commute still has one result, however the pulls are listed."""
    plan = plan_of("abcd")
    outcomes = [done(("log", [word])) for word in words]
    listed = base_of(plan, *pulls("a", "b", "c", "d"))
    shuffled = base_of(plan, *pulls(*("abcd"[i] for i in order)))
    state = folded(plan, shuffled, [outcomes[i] for i in order])
    assert state == folded(plan, listed, outcomes)


def test_one_task_may_write_a_reduced_channel_several_times() -> None:
    plan = plan_of("a")
    state = folded(plan, base_of(plan, *pulls("a"), total=1), [done(("total", 2), ("log", ["x"]), ("total", 3))])
    assert state.values == {"log": ["x"], "total": 6}


def test_merging_changes_nothing_in_place() -> None:
    plan = plan_of("a")
    base = base_of(plan, *pulls("a"), log=["before"])
    merged = merge(plan, base.state, base.tasks, [done(("log", ["after"]))])
    assert base.state.values["log"] == ["before"]
    assert merged.state.values["log"] == ["before", "after"]


# -- what a superstep leaves beside its values ------------------------------------------------------------------------


def test_a_superstep_counts_its_tasks_and_names_its_writers() -> None:
    plan = plan_of("abc")
    base = base_of(plan, *sends("c", "c"), *pulls("b", "a"))
    state = folded(plan, base, [done() for _ in base.tasks])
    assert state.activations == {"a": 1, "b": 1, "c": 2}
    assert state.writers == ("a", "b", "c")
    assert state.step == base.state.step + 1
    again = merge(plan, state._replace(next=pulls("a")), base_of(plan, *pulls("a")).tasks, [done()]).state
    assert again.activations == {"a": 2, "b": 1, "c": 2}
    assert again.writers == ("a",)


def test_only_written_and_settled_channels_count_as_changed() -> None:
    plan = plan_of("a")
    base = base_of(plan, *pulls("a"), last="kept")
    assert merge(plan, base.state, base.tasks, [done(("log", []))]).changed == ("log",)
    assert merge(plan, base.state, base.tasks, [done()]).changed == ()


# -- channel kinds ----------------------------------------------------------------------------------------------------


class Kinds(TypedDict, total=False):
    fleeting: Annotated[str, EphemeralValue(str, guard=False)]
    heap: Annotated[list[str], Topic(str)]
    pile: Annotated[list[str], Topic(str, True)]
    either: Annotated[str, AnyValue]
    final: Annotated[str, LastValueAfterFinish]
    best: Annotated[int, max]


def test_channels_that_live_one_superstep_settle_when_nothing_writes_them() -> None:
    plan = plan_of("a", schema=Kinds)
    first = folded(
        plan, base_of(plan, *pulls("a")), [done(*((key, "x") for key in Kinds.__annotations__ if key != "best"))]
    )
    assert first.values == {"fleeting": "x", "heap": ["x"], "pile": ["x"], "either": "x", "final": "x", "best": 0}
    base = base_of(plan, *pulls("a"), **first.values)
    second = merge(plan, base.state, base.tasks, [done()])
    assert second.state.values == {"pile": ["x"], "final": "x", "best": 0}
    assert set(second.changed) == {"fleeting", "heap", "either"}


def test_the_last_in_merge_order_wins_where_a_channel_keeps_one_of_many() -> None:
    plan = plan_of("ab", schema=Kinds)
    base = base_of(plan, *sends("a"), *pulls("a", "b"))
    outcomes = [done((key, text)) for key, text in (("final", "send"), ("final", "a"), ("final", "b"))]
    assert folded(plan, base, outcomes).values["final"] == "send"


def test_two_writes_of_a_plain_channel_are_refused_and_both_tasks_named() -> None:
    """INV-4: the refusal is the merge's; the outcomes are left as they are."""
    plan = plan_of("ab")
    base = base_of(plan, *pulls("b", "a"))
    with pytest.raises(InvalidUpdateError, match="At key 'last': Can receive only one value per step") as raised:
        folded(plan, base, [done(("last", 1)), done(("last", 2))])
    assert raised.value.fields().items() >= {"channel": "last", "tasks": ["a", "b"]}.items()
    assert str(raised.value).endswith("Written by: a, b.")


@pytest.mark.parametrize("spelled", [Overwrite(["new"]), {"__overwrite__": ["new"]}])
def test_an_overwrite_wins_wherever_it_stands(spelled: Any) -> None:
    """INV-5: the position of the overwrite among its siblings leaves no trace."""
    plan = plan_of("abc")
    base = base_of(plan, *pulls("a", "b", "c"), log=["old"])
    for order in itertools.permutations([spelled, ["x"], ["y"]]):
        assert folded(plan, base, [done(("log", value)) for value in order]).values["log"] == ["new"]


def test_a_second_overwrite_in_one_superstep_is_refused() -> None:
    plan = plan_of("ab")
    base = base_of(plan, *pulls("a", "b"))
    with pytest.raises(InvalidUpdateError, match="only one Overwrite value per super-step"):
        folded(plan, base, [done(("log", Overwrite([]))), done(("log", Overwrite([])))])


# -- merging fails ----------------------------------------------------------------------------------------------------


def raising(left: int, right: int) -> int:
    if right < 0:
        raise KeyError("no negatives")
    return left + right


class Fragile(TypedDict):
    number: Annotated[int, raising]
    other: Annotated[int, operator.add]


def test_a_reducer_that_raises_is_a_merge_error_naming_channel_and_tasks() -> None:
    """INV-4: the outcomes stay; only the merge has to be done again."""
    plan = plan_of("abc", schema=Fragile)
    base = base_of(plan, *pulls("a", "b", "c"))
    outcomes = [done(("number", 1)), done(("number", -1)), done(("other", 1))]
    with pytest.raises(MergeError, match="no negatives") as raised:
        folded(plan, base, outcomes)
    assert (raised.value.fields()["channel"], raised.value.fields()["tasks"]) == ("number", ["a", "b"])
    assert isinstance(raised.value.__cause__, KeyError)


class Checked(BaseModel):
    age: int = 0
    name: str = ""


def test_written_fields_are_validated_and_coerced_once() -> None:
    plan = plan_of("ab", schema=Checked)
    base = base_of(plan, *pulls("a", "b"))
    assert folded(plan, base, [done(("age", "7")), done(("name", "x"))]).values == {"age": 7, "name": "x"}
    with pytest.raises(StateValidationError, match="'b' wrote an invalid value to field 'age'") as raised:
        folded(plan, base, [done(("name", "x")), done(("age", "seven"))])
    assert (raised.value.fields()["node"], raised.value.fields()["field"]) == ("b", "age")


def test_values_that_were_only_read_are_never_validated() -> None:
    plan = plan_of("a", schema=Checked)
    base = base_of(plan, *pulls("a"), age="old text")
    assert folded(plan, base, [done(("name", "x"))]).values == {"age": "old text", "name": "x"}


# -- what a router sees -----------------------------------------------------------------------------------------------


def test_a_router_sees_the_base_with_its_own_nodes_writes_only() -> None:
    plan = plan_of("ab")
    base = base_of(plan, *pulls("a", "b"), log=["base"])
    assert view(plan, base.state, [("log", ["mine"]), ("last", 1)]) == {"log": ["base", "mine"], "total": 0, "last": 1}
    assert base.state.values["log"] == ["base"]
