"""Messages merge by id, whether they are langchain-core objects or plain dicts."""

import subprocess
import sys
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from stepwell import START, InMemorySaver, StateGraph
from stepwell.errors import InvalidUpdateError
from stepwell.graph import message_shapes
from stepwell.graph.channels import BinaryOperatorAggregate
from stepwell.graph.messages import REMOVE_ALL_MESSAGES, MessagesState, add_messages, with_ids
from stepwell.graph.types import Overwrite

core = pytest.importorskip("langchain_core.messages")
Human, AI, System, Remove = core.HumanMessage, core.AIMessage, core.SystemMessage, core.RemoveMessage


@pytest.fixture
def no_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_shapes, "langchain", lambda: None)


def ids(messages: list[Any]) -> list[Any]:
    return [message_shapes.id_of(message) for message in messages]


def test_new_messages_are_appended() -> None:
    left, right = [Human("hi", id="1")], AI("hello", id="2")
    assert add_messages(left, right) == [left[0], right]
    assert add_messages(left[0], [right]) == [left[0], right]


def test_a_message_with_a_known_id_takes_its_place() -> None:
    left = [Human("a", id="1"), Human("b", id="2")]
    assert add_messages(left, Human("c", id="1")) == [Human("c", id="1"), Human("b", id="2")]
    assert left == [Human("a", id="1"), Human("b", id="2")]


def test_the_last_of_equal_ids_in_one_write_stays() -> None:
    assert add_messages([], [AI("a", id="1"), AI("b", id="1")]) == [AI("b", id="1")]


def test_remove_message_removes_and_a_later_one_brings_it_back() -> None:
    left = [Human("a", id="1"), AI("b", id="2")]
    assert add_messages(left, Remove(id="2")) == [left[0]]
    assert add_messages(left, [Remove(id="2"), Remove(id="2")]) == [left[0]]
    assert add_messages([Human("a", id="1")], [Remove(id="1"), AI("b", id="1")]) == [AI("b", id="1")]


def test_removing_an_unknown_message_is_an_error() -> None:
    with pytest.raises(ValueError, match="Attempting to delete a message with an ID that doesn't exist"):
        add_messages([Human("a", id="1")], Remove(id="2"))


def test_remove_all_drops_everything_before_it() -> None:
    right = [Human("b", id="2"), Remove(id=REMOVE_ALL_MESSAGES), Human("c", id="3")]
    assert add_messages([Human("a", id="1")], right) == [Human("c", id="3")]
    assert add_messages([Human("a", id="1")], Remove(id=REMOVE_ALL_MESSAGES)) == []


def test_anything_langchain_takes_for_a_message_is_coerced() -> None:
    merged = add_messages([("user", "a")], ["b", {"role": "assistant", "content": "c"}])
    assert [type(message) for message in merged] == [Human, Human, AI]
    assert [message.content for message in merged] == ["a", "b", "c"]


def test_chunks_become_whole_messages() -> None:
    assert add_messages([], [core.AIMessageChunk("a", id="1")]) == [AI("a", id="1")]


def test_by_hand_missing_ids_are_random() -> None:
    for message in add_messages([Human("a")], [AI("b")]):
        assert UUID(message.id).version == 4


def test_both_sides_must_be_given() -> None:
    with pytest.raises(ValueError, match="Must specify non-null arguments for both 'left' and 'right'"):
        add_messages([Human("a")], None)
    with pytest.raises(ValueError, match="Unrecognized format='xml'"):
        add_messages([], [], format="xml")  # type: ignore[call-overload]


def test_ids_are_made_from_the_index_and_the_users_objects_stay_as_they_are() -> None:
    mine = Human("a")
    filled = with_ids([mine, Human("b", id="own"), ("ai", "c")], lambda i: f"t-{i}")
    assert ids(filled) == ["t-0", "own", "t-2"]
    assert mine.id is None


def test_one_message_is_a_list_of_one() -> None:
    assert ids(with_ids(Human("a"), str)) == ["0"]


def test_an_overwrite_is_completed_and_stays_an_overwrite() -> None:
    for written in (Overwrite([("user", "a")]), {"__overwrite__": [("user", "a")]}):
        assert with_ids(written, str) == Overwrite([Human("a", id="0")])


def test_a_constant_message_written_twice_is_two_messages() -> None:
    constant = AI("done")
    channel = BinaryOperatorAggregate(list, add_messages)
    once = channel.fold([], [channel.with_ids([constant], lambda i: f"first-{i}")], "messages")
    twice = channel.fold(once, [channel.with_ids([constant], lambda i: f"second-{i}")], "messages")
    assert ids(twice) == ["first-0", "second-0"]


def test_openai_format_rewrites_contents_and_keeps_ids() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "1234"}}
    result = {"type": "tool_result", "tool_use_id": "1", "is_error": False, "content": [image]}
    merge = add_messages(format="langchain-openai")
    block = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,1234"}}
    assert merge([], [Human([image], id="a")]) == [Human([block], id="a")]
    assert merge([], [Human([result], id="b")]) == [core.ToolMessage([block], tool_call_id="1", id="b")]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.text(max_size=3)), max_size=6))
def test_ids_stay_unique_and_in_order_of_first_appearance(written: list[tuple[str, str]]) -> None:
    merged = add_messages([], [Human(text, id=name) for name, text in written])
    assert ids(merged) == list(dict.fromkeys(name for name, _ in written))
    assert {message.id: message.content for message in merged} == dict(written)


@pytest.mark.usefixtures("no_langchain")
def test_without_langchain_messages_are_dicts() -> None:
    merged = add_messages([{"role": "user", "content": "a", "id": "1"}], ["b", ("assistant", "c")])
    assert [message["role"] for message in merged] == ["user", "user", "assistant"]
    assert add_messages(merged, message_shapes.PlainRemoveMessage("1")) == merged[1:]
    assert with_ids("b", str) == [{"role": "user", "content": "b", "id": "0"}]
    assert message_shapes.removal_class() is message_shapes.PlainRemoveMessage


@pytest.mark.usefixtures("no_langchain")
def test_without_langchain_a_removal_is_stored_wherever_it_comes_from() -> None:
    remove = message_shapes.removal_class()
    graph = StateGraph(MessagesState).add_node("forget", lambda state: {"messages": [remove("b")]})
    app = graph.add_edge(START, "forget").compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "chat"}}
    app.invoke({"messages": [{"role": "user", "content": name, "id": name} for name in "abcd"]}, config)
    app.update_state(config, {"messages": [remove("c")]})
    app.update_state(config, {"messages": {"role": "user", "content": "b", "id": "b"}}, as_node=START)
    app.invoke({"messages": [remove("a")]}, config)
    assert ids(app.get_state(config).values["messages"]) == ["d"]


@pytest.mark.usefixtures("no_langchain")
def test_without_langchain_what_is_no_message_is_refused() -> None:
    with pytest.raises(InvalidUpdateError, match="Not a message: 3"):
        add_messages([], [3])
    with pytest.raises(ImportError, match="needs langchain-core"):
        add_messages([], ["a"], format="langchain-openai")


def test_langchain_is_imported_by_the_first_message_only() -> None:
    code = (
        "import sys; from stepwell.graph.messages import MessagesState, add_messages; import stepwell.plan.compile;"
        "assert not {'langchain_core', 'pydantic', 'asyncio'} & set(sys.modules), sys.modules.keys();"
        "from stepwell.graph.messages import RemoveMessage; from langchain_core.messages import RemoveMessage as R;"
        "assert RemoveMessage is R"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
