"""Channels through a saver: the live value is the reloaded one, for every kind of channel and in every mode."""

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from stepwell import (
    START,
    Command,
    EphemeralValue,
    MessagesState,
    Overwrite,
    RemoveMessage,
    SqliteSaver,
    StateGraph,
    Topic,
    UntrackedValue,
    interrupt,
)
from tests.runtime.graphs import GIVEN, Call, Counted, Flaky, chain, fan, thread


class Kinds(TypedDict, total=False):
    last: int
    added: Annotated[list[str], operator.add]
    joined: Annotated[set[int], operator.or_]
    topic: Annotated[list[str], Topic(str)]
    kept: Annotated[list[str], Topic(str, accumulate=True)]
    brief: Annotated[str, EphemeralValue(str)]
    aside: Annotated[Any, UntrackedValue(object)]


def writes(name: str, number: int) -> Any:
    def node(state: Kinds) -> dict[str, Any]:
        found = {"added": [name], "joined": {number}, "topic": [name], "kept": [name]}
        return found | ({"last": number, "brief": name, "aside": object()} if name == "c" else {})

    return node


def test_the_live_value_is_the_reloaded_one(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """INV-5, the untracked channel excepted: it is never stored."""
    graph = fan(*((name, writes(name, i)) for i, name in enumerate("abc")), schema=Kinds)
    graph.add_node("d", writes("d", 3)).add_edge(["a", "b", "c"], "d")
    compiled = graph.compile(checkpointer=saver)
    live = call(compiled, {}, thread(), durability=any_durability)
    stored = compiled.get_state(thread()).values
    assert {key: value for key, value in live.items() if key != "aside"} == stored
    assert "aside" in live
    assert stored == {
        "last": 2,
        "added": ["a", "b", "c", "d"],
        "joined": {0, 1, 2, 3},
        "topic": ["d"],
        "kept": ["a", "b", "c", "d"],
    }


@pytest.mark.parametrize("overwriting", ["a", "b", "c"])
def test_an_overwrite_beats_every_other_write_of_its_superstep(
    overwriting: str, call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    """INV-5: whichever of three siblings overwrites, live and reloaded."""

    def node(name: str) -> Any:
        value = [name] if name != overwriting else Overwrite([f"only {name}"])
        return lambda state: {"added": value}

    graph = fan(*((name, node(name)) for name in "abc"), schema=Kinds).compile(checkpointer=saver)
    live = call(graph, {"added": ["in"]}, thread(), durability=any_durability)
    assert live["added"] == graph.get_state(thread()).values["added"] == [f"only {overwriting}"]


# -- messages ---------------------------------------------------------------------------------------------------------


def talk(saver: SqliteSaver, *nodes: tuple[str, Any]) -> Any:
    return chain(*nodes, schema=MessagesState).compile(checkpointer=saver)


def test_messages_get_ids_once_and_keep_them(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    say = Counted("say", lambda state: {"messages": [AIMessage("hello"), AIMessage("there")]})
    graph = talk(saver, ("say", say), ("end", lambda state: {"messages": HumanMessage("bye")}))
    live = call(graph, {"messages": [("user", "hi")]}, thread(), durability=any_durability)["messages"]
    stored = graph.get_state(thread()).values["messages"]
    assert stored == live
    assert [message.content for message in live] == ["hi", "hello", "there", "bye"]
    assert len({message.id for message in live}) == 4
    assert None not in {message.id for message in live}


def test_ids_of_messages_are_fixed_with_the_outcome(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """What a finished task said has one id, before and after its failed sibling is run again."""
    flaky = Flaky("flaky")
    graph = StateGraph(MessagesState).add_node("say", lambda state: {"messages": [AIMessage("hello")]})
    graph.add_node("flaky", lambda state: {"messages": flaky(state)["log"]}).add_edge(START, "say").add_edge(
        START, "flaky"
    )
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        call(compiled, {"messages": []}, thread(), durability=any_durability)
    (pending,) = compiled.get_state(thread()).values["messages"]
    done = call(compiled, None, thread(), durability=any_durability)["messages"]
    assert pending in done
    assert len(done) == 2


def test_messages_are_replaced_and_removed_by_id(call: Call, saver: SqliteSaver) -> None:
    def revise(state: MessagesState) -> dict[str, Any]:
        first, second = state["messages"]
        return {"messages": [HumanMessage("revised", id=first.id), RemoveMessage(id=second.id)]}

    graph = talk(saver, ("revise", revise))
    done = call(graph, {"messages": [("user", "draft"), ("ai", "noise")]}, thread())["messages"]
    assert [(type(message), message.content) for message in done] == [(HumanMessage, "revised")]
    assert graph.get_state(thread()).values["messages"] == done


def test_an_answer_may_be_a_message(call: Call, saver: SqliteSaver) -> None:
    graph = talk(saver, ("ask", lambda state: {"messages": [interrupt(AIMessage("your turn", id="q"))]}))
    given = GIVEN[0] | {"messages": []}
    (question,) = call(graph, given, thread())["__interrupt__"]
    assert question.value == AIMessage("your turn", id="q")
    done = call(graph, Command(resume=HumanMessage("mine", id="a")), thread())
    assert done == {"messages": [HumanMessage("mine", id="a")]}
