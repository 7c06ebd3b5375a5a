"""Channels: how the writes of one superstep become the next value."""

import operator
from collections.abc import Mapping, MutableSequence, Sequence
from typing import Annotated, Any

import pytest
from hypothesis import given, strategies as st

from stepwell.errors import InvalidGraphError, InvalidUpdateError
from stepwell.graph.channels import (
    AnyValue,
    BinaryOperatorAggregate,
    Channel,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    Topic,
    UntrackedValue,
)
from stepwell.graph.channels.delta import DeltaChannel
from stepwell.graph.messages import add_messages
from stepwell.graph.types import MISSING, Overwrite

lists = st.lists(st.integers(), max_size=4)
ALL_KINDS: list[Channel] = [
    LastValue(int),
    AnyValue(int),
    EphemeralValue(int),
    UntrackedValue(int),
    LastValueAfterFinish(int),
    Topic(int),
    Topic(int, accumulate=True),
    NamedBarrierValue(str, {"a"}),
    BinaryOperatorAggregate(list, operator.add),
]


def test_last_value_keeps_the_one_write() -> None:
    assert LastValue(int).initial() is MISSING
    assert LastValue(int).fold(1, [2], "k") == 2
    assert LastValue(int).fold(1, [None], "k") is None


def test_last_value_refuses_two_writes_by_key() -> None:
    with pytest.raises(InvalidUpdateError) as caught:
        LastValue(int).fold(1, [2, 2], "k")
    assert str(caught.value) == (
        "At key 'k': Can receive only one value per step. Use an Annotated key to handle multiple values."
    )
    assert caught.value.fields()["key"] == "k"


@pytest.mark.parametrize("kind", [EphemeralValue, UntrackedValue])
def test_guarded_values_refuse_two_writes_unless_declared_open(kind: Any) -> None:
    with pytest.raises(InvalidUpdateError, match=rf"At key 'k': {kind.__name__}\(guard=True\) can receive only one"):
        kind(int).fold(MISSING, [1, 2], "k")
    assert kind(int, guard=False).fold(MISSING, [1, 2], "k") == 2
    assert kind(int).single
    assert not kind(int, guard=False).single


def test_ephemeral_and_any_values_are_gone_when_a_superstep_does_not_write_them() -> None:
    assert EphemeralValue(int).settle(1) is MISSING
    assert AnyValue(int).settle(1) is MISSING
    assert AnyValue(int).fold(MISSING, [1, 2], "k") == 2


def test_untracked_values_stay_but_are_not_stored() -> None:
    assert UntrackedValue(int).settle(1) == 1
    assert [channel.tracked for channel in ALL_KINDS].count(False) == 1
    assert not UntrackedValue(int).tracked


def test_topic_collects_one_superstep_and_flattens_lists() -> None:
    topic = Topic(str)
    assert topic.fold(["old"], ["a", ["b", "c"], "d"], "k") == ["a", "b", "c", "d"]
    assert topic.fold(["old"], [[]], "k") is MISSING
    assert topic.settle(["a"]) is MISSING


def test_accumulating_topic_keeps_everything() -> None:
    topic = Topic(str, accumulate=True)
    current = ["a", "b"]
    assert topic.fold(current, ["b", ["c"]], "k") == ["a", "b", "b", "c"]
    assert current == ["a", "b"]
    assert topic.settle(current) == ["a", "b"]


def test_barrier_collects_the_names_it_knows() -> None:
    barrier = NamedBarrierValue(str, {"a", "b"})
    assert barrier.fold(MISSING, ["a"], "k") == {"a"}
    assert barrier.fold({"a"}, ["b"], "k") == {"a", "b"}
    with pytest.raises(InvalidUpdateError, match="At key 'k': Value c not in"):
        barrier.fold(MISSING, ["c"], "k")


@pytest.mark.parametrize(
    ("typ", "initial"),
    [
        (list, []),
        (list[int], []),
        (Sequence, []),
        (Sequence[int], []),
        (MutableSequence[int], []),
        (Mapping[str, int], {}),
        (set[int], set()),
        (int, 0),
        (str, ""),
        (Annotated[list[int], "note"], []),
        (int | None, MISSING),
        (Any, MISSING),
    ],
)
def test_a_reduced_channel_starts_with_its_type_if_that_can_be_made(typ: Any, initial: Any) -> None:
    assert BinaryOperatorAggregate(typ, operator.add).initial() == initial


def test_a_fresh_initial_value_is_made_each_time() -> None:
    channel = BinaryOperatorAggregate(list, operator.add)
    assert channel.initial() is not channel.initial()


def test_the_first_write_starts_a_channel_that_has_no_value() -> None:
    channel = BinaryOperatorAggregate(int | None, operator.add)
    assert channel.fold(MISSING, [3, 4], "k") == 7
    assert channel.fold(MISSING, [Overwrite(3)], "k") == 3


@given(lists, st.lists(lists, max_size=5))
def test_writes_are_folded_in_order_and_nothing_is_changed_in_place(
    current: list[int], writes: list[list[int]]
) -> None:
    before = list(current)
    channel = BinaryOperatorAggregate(list, operator.add)
    assert channel.fold(current, writes, "k") == current + [item for write in writes for item in write]
    assert current == before


@given(lists, st.lists(lists, max_size=4), st.lists(lists, max_size=4))
def test_folding_in_two_parts_is_folding_at_once(current: list[int], a: list[list[int]], b: list[list[int]]) -> None:
    channel = BinaryOperatorAggregate(list, operator.add)
    assert channel.fold(channel.fold(current, a, "k"), b, "k") == channel.fold(current, a + b, "k")


def spellings(value: Any) -> list[Any]:
    return [Overwrite(value), {"__overwrite__": value}, {"type": "__overwrite__", "value": value}]


@given(lists | st.just(MISSING), lists, st.lists(lists, max_size=4), st.integers(0, 4), st.integers(0, 2))
def test_D7_an_overwrite_wins_wherever_it_stands_in_the_superstep(
    current: Any, value: list[int], others: list[Any], position: int, spelling: int
) -> None:
    writes = [*others[:position], spellings(value)[spelling], *others[position:]]
    assert BinaryOperatorAggregate(list, operator.add).fold(current, writes, "k") == value


def test_two_overwrites_in_a_superstep_are_an_error() -> None:
    with pytest.raises(InvalidUpdateError) as caught:
        BinaryOperatorAggregate(list, operator.add).fold([], [Overwrite([1]), [2], {"__overwrite__": [3]}], "k")
    assert str(caught.value) == "Can receive only one Overwrite value per super-step."


def test_a_dict_that_only_holds_an_overwrite_key_among_others_is_a_value() -> None:
    merge = BinaryOperatorAggregate(dict, operator.or_)
    assert merge.fold({}, [{"__overwrite__": 1, "b": 2}], "k") == {"__overwrite__": 1, "b": 2}


@pytest.mark.parametrize("channel", ALL_KINDS, ids=repr)
def test_a_superstep_that_writes_nothing_leaves_what_settling_leaves(channel: Channel) -> None:
    current = channel.fold(MISSING, ["a"] if isinstance(channel, NamedBarrierValue) else [[1]], "k")
    assert channel.settles or channel.settle(current) == current


def test_single_channels_are_those_whose_value_is_the_write() -> None:
    assert [type(c).__name__ for c in ALL_KINDS if c.single] == ["LastValue", "EphemeralValue", "UntrackedValue"]


def test_declarations_name_kind_type_and_reducer() -> None:
    assert LastValue(int).declaration() == "LastValue(int)"
    assert LastValue(list[str] | None).declaration() == "LastValue(list[str] | None)"
    assert BinaryOperatorAggregate(list[int], operator.add).declaration() == (
        "BinaryOperatorAggregate(list[int], _operator:add)"
    )
    assert Topic(str, accumulate=True).declaration() == "Topic(str, accumulate=True)"
    assert NamedBarrierValue(str, ["b", "a"]).declaration() == "NamedBarrierValue(str, 'a', 'b')"


def test_declarations_of_partials_and_objects_hold_no_addresses() -> None:
    class Reducer:
        def __call__(self, a: Any, b: Any) -> Any:
            return b

    for reducer in (add_messages(format="langchain-openai"), Reducer(), lambda a, b: b):
        assert "0x" not in BinaryOperatorAggregate(list, reducer).declaration()


def test_channels_agree_when_kind_and_rule_do() -> None:
    assert LastValue(int) == LastValue(str)
    assert LastValue(int) != AnyValue(int)
    assert Topic(int) != Topic(int, accumulate=True)
    assert BinaryOperatorAggregate(int, operator.add) == BinaryOperatorAggregate(str, operator.add)
    assert BinaryOperatorAggregate(int, operator.add) != BinaryOperatorAggregate(int, operator.or_)
    assert BinaryOperatorAggregate(int, lambda a, b: a) == BinaryOperatorAggregate(int, lambda a, b: a)


def test_only_message_channels_invent_ids() -> None:
    assert BinaryOperatorAggregate(list, add_messages).invents_ids
    assert BinaryOperatorAggregate(list, add_messages(format="langchain-openai")).invents_ids
    assert not BinaryOperatorAggregate(list, operator.add).invents_ids
    assert BinaryOperatorAggregate(list, operator.add).with_ids([1], str) == [1]


@pytest.mark.parametrize(
    "wrong", [{"reducer": None}, {"reducer": 5}, {"reducer": list, "name": ""}, {"reducer": list, "name": 5}]
)
def test_a_delta_channel_without_a_reducer_or_with_a_name_that_is_none_is_refused_as_it_is_declared(wrong: Any) -> None:
    with pytest.raises(InvalidGraphError, match="of a DeltaChannel is"):
        DeltaChannel(**wrong)
