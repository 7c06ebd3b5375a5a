"""The stream mode `messages`: chat model tokens and the messages nodes write, each once, with where it comes from."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.callbacks import CallbackManager
from langchain_core.callbacks.base import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig

from stepwell import (
    START,
    Command,
    MessagesState,
    RetryPolicy,
    Runtime,
    SqliteSaver,
    StateGraph,
    add_messages,
    get_config,
)
from stepwell.graph import message_shapes
from tests.runtime.graphs import Chunks, thread

HELLO = HumanMessage("hello", id="h1")
GIVEN = {"messages": [HELLO]}


def model(*texts: str, **more: Any) -> Any:
    """Return a model that says the texts in turn, word by word."""
    return GenericFakeChatModel(messages=iter([AIMessage(text, id=f"m{i}") for i, text in enumerate(texts, 1)]), **more)


def talk(*nodes: tuple[str, Any], schema: Any = MessagesState) -> Any:
    return StateGraph(schema).add_sequence(list(nodes)).add_edge(START, nodes[0][0])


def said(found: list[Any]) -> list[tuple[Any, Any]]:
    """Return (id, content) of each chunk."""
    return [(message.id, message.content) for message, _ in found]


# -- tokens -----------------------------------------------------------------------------------------------------------


def test_a_models_tokens_are_shown_as_it_speaks_and_its_message_not_again(chunks: Chunks, saver: SqliteSaver) -> None:
    speaker = model("big world")
    graph = talk(("speak", lambda state: {"messages": [speaker.invoke(state["messages"])]})).compile(checkpointer=saver)
    config = thread(metadata={"team": "blue"}, tags=["night"])
    found = chunks(graph, GIVEN, config, stream_mode="messages")
    assert said(found) == [("m1", "big"), ("m1", " "), ("m1", "world")]
    task = next(s for s in graph.get_state_history(thread()) if s.next == ("speak",)).tasks[0]
    assert {key: found[0][1].get(key) for key in METADATA} == {
        "team": "blue",
        "tags": ["night"],
        "thread_id": "t",
        "langgraph_step": 1,
        "langgraph_node": "speak",
        "langgraph_triggers": ("branch:to:speak",),
        "langgraph_path": ("__pregel_pull", "speak"),
        "langgraph_checkpoint_ns": f"speak:{task.id}",
        "stepwell_task_id": task.id,
        "stepwell_attempt": 1,
        "ls_model_type": "chat",
    }
    assert graph.get_state(thread()).values["messages"][-1].content == "big world"


METADATA = (
    "team", "tags", "thread_id", "langgraph_step", "langgraph_node", "langgraph_triggers", "langgraph_path",
    "langgraph_checkpoint_ns", "stepwell_task_id", "stepwell_attempt", "ls_model_type",
)  # fmt: skip


async def test_tokens_are_live() -> None:
    """INV-11: the consumer has the first token while the model still speaks."""
    may_go_on = asyncio.Event()

    class Slow(GenericFakeChatModel):
        async def _astream(self, *args: Any, **more: Any) -> Any:
            async for chunk in super()._astream(*args, **more):
                yield chunk
                await may_go_on.wait()

    speaker = Slow(messages=iter([AIMessage("big world", id="m1")]))

    async def speak(state: Any) -> Any:
        return {"messages": [await speaker.ainvoke(state["messages"])]}

    found = []
    async for chunk in talk(("speak", speak)).compile().astream(GIVEN, stream_mode="messages"):
        found.append(chunk)
        may_go_on.set()
    assert said(found) == [("m1", "big"), ("m1", " "), ("m1", "world")]


def test_a_model_is_heard_from_tasks_threads_and_with_the_nodes_own_config(chunks: Chunks) -> None:
    speakers = [model(f"text{i}") for i in range(3)]
    for i, speaker in enumerate(speakers):
        speaker.messages = iter([AIMessage(f"text{i}", id=f"own{i}")])

    async def speak(state: Any, config: RunnableConfig) -> Any:
        nested = asyncio.create_task(speakers[0].ainvoke("?"))
        threaded = asyncio.to_thread(speakers[1].invoke, "?")
        await asyncio.gather(nested, threaded, speakers[2].ainvoke("?", config))

    found = chunks(talk(("speak", speak)).compile(), GIVEN, stream_mode="messages")
    assert sorted(said(found)) == [(f"own{i}", f"text{i}") for i in range(3)]
    assert {metadata["langgraph_node"] for _, metadata in found} == {"speak"}


def test_a_model_that_is_a_node_is_heard(chunks: Chunks) -> None:
    chain: Any = (lambda state: state["messages"]) | model("big world") | (lambda said: {"messages": [said]})
    found = chunks(talk(("speak", chain)).compile(), GIVEN, stream_mode="messages")
    assert [content for _, content in said(found)] == ["big", " ", "world"]


def test_a_model_that_does_not_stream_is_shown_whole(chunks: Chunks) -> None:
    speaker = FakeListChatModel(responses=["big world"], disable_streaming=True)
    graph = talk(("speak", lambda state: {"messages": [speaker.invoke(state["messages"])]})).compile()
    assert [content for _, content in said(chunks(graph, GIVEN, stream_mode="messages"))] == ["big world"]


def test_a_model_tagged_nostream_is_not_heard_but_what_the_node_writes_is(chunks: Chunks) -> None:
    quiet = model("secret thought", "big world").with_config(tags=["nostream"])

    def think(state: Any) -> Any:
        quiet.invoke("think")
        return {"messages": [quiet.invoke(state["messages"])]}

    assert said(chunks(talk(("think", think)).compile(), GIVEN, stream_mode="messages")) == [("m2", "big world")]


def test_a_repeated_attempt_says_which_it_is(chunks: Chunks) -> None:
    speaker = model("one", "two")

    def flaky(state: Any) -> Any:
        message = speaker.invoke("?")
        if message.content == "one":
            raise ConnectionError("not now")
        return {"messages": [message]}

    graph = StateGraph(MessagesState).add_node(
        "flaky", flaky, retry_policy=RetryPolicy(initial_interval=0, jitter=False)
    )
    found = chunks(graph.add_edge(START, "flaky").compile(), GIVEN, stream_mode="messages")
    assert [(message.content, metadata["stepwell_attempt"]) for message, metadata in found] == [("one", 1), ("two", 2)]


@pytest.mark.parametrize("wrap", [list, CallbackManager], ids=["list", "manager"])
def test_the_callers_own_callbacks_hear_the_model_too(wrap: Any, chunks: Chunks) -> None:
    class Heard(BaseCallbackHandler):
        tokens: list[str] = []

        def on_llm_new_token(self, token: Any, **more: Any) -> None:
            self.tokens.append(token)

    heard, speaker = Heard(), model("big world")
    Heard.tokens.clear()
    graph = talk(("speak", lambda state: {"messages": [speaker.invoke("?")]})).compile()
    found = chunks(graph, GIVEN, {"callbacks": wrap([heard])}, stream_mode="messages")
    assert heard.tokens == [content for _, content in said(found)] == ["big", " ", "world"]


def test_callbacks_reach_a_model_without_any_stream(saver: SqliteSaver) -> None:
    class Heard(BaseCallbackHandler):
        nodes: list[str] = []

        def on_chat_model_start(self, *args: Any, metadata: Any = None, **more: Any) -> None:
            self.nodes.append(metadata["langgraph_node"])

    Heard.nodes.clear()
    speaker = model("big world")
    graph = talk(("speak", lambda state: {"messages": [speaker.invoke("?")]})).compile(checkpointer=saver)
    graph.invoke(GIVEN, thread(callbacks=[Heard()]))
    assert Heard.nodes == ["speak"]


def test_the_config_of_a_node_says_where_it_stands_and_another_graph_does_not_take_it_over(saver: SqliteSaver) -> None:
    inner: Any = (
        StateGraph(MessagesState)
        .add_node("noop", lambda state: None)
        .add_edge(START, "noop")
        .compile(checkpointer=saver, name="inner")
    )

    def call(state: Any) -> None:
        config = get_config()
        assert config["metadata"]["langgraph_checkpoint_ns"].startswith("call:")
        inner.invoke(GIVEN, {"configurable": {"thread_id": "inner"}, "metadata": config["metadata"]})

    talk(("call", call)).compile(checkpointer=saver).invoke(GIVEN, thread(metadata={"team": "blue"}))
    metadata = inner.get_state(thread("inner")).metadata
    assert {key for key in metadata if key.startswith(("langgraph", "stepwell"))} == set()
    assert metadata["team"] == "blue"


# -- written ----------------------------------------------------------------------------------------------------------


def test_written_messages_are_shown_whole_with_the_id_the_state_has(chunks: Chunks, saver: SqliteSaver) -> None:
    def write(state: Any) -> Any:
        return {"messages": [("ai", "pair"), {"role": "ai", "content": "dict"}, AIMessage("whole"), HELLO]}

    graph = talk(("write", write)).compile(checkpointer=saver)
    found = chunks(graph, GIVEN, thread(), stream_mode="messages")
    state = graph.get_state(thread()).values["messages"]
    assert said(found) == [(message.id, message.content) for message in state if message.id != "h1"]
    assert [content for _, content in said(found)] == ["pair", "dict", "whole"]
    assert {metadata["langgraph_node"] for _, metadata in found} == {"write"}


def test_a_message_is_shown_once_however_often_it_is_passed_on(chunks: Chunks) -> None:
    class Two(TypedDict, total=False):
        messages: Annotated[list[Any], add_messages]
        last: Any

    new = AIMessage("new", id="n1")
    nodes = ("first", lambda state: {"messages": new, "last": new}), ("second", lambda state: {"last": [HELLO, new]})
    assert said(chunks(talk(*nodes, schema=Two).compile(), GIVEN, stream_mode="messages")) == [("n1", "new")]


def test_messages_in_a_command_are_shown_and_removals_are_not(chunks: Chunks) -> None:
    def swap(state: Any) -> Any:
        return Command(update={"messages": [RemoveMessage(id="h1"), AIMessage("instead", id="i1")]})

    assert said(chunks(talk(("swap", swap)).compile(), GIVEN, stream_mode="messages")) == [("i1", "instead")]


def test_messages_in_a_dataclass_state_are_known(chunks: Chunks) -> None:
    @dataclass
    class Chat:
        messages: Annotated[list[Any], add_messages] = field(default_factory=list)

    graph = talk(("echo", lambda state: {"messages": [*state.messages, AIMessage("new", id="n1")]}), schema=Chat)
    assert said(chunks(graph.compile(), GIVEN, stream_mode="messages")) == [("n1", "new")]


def test_written_messages_come_before_the_update_that_holds_them(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = talk(("write", lambda state: {"messages": AIMessage("new", id="n1")})).compile(checkpointer=saver)
    found = chunks(graph, GIVEN, thread(), stream_mode=["updates", "messages"])
    assert [mode for mode, _ in found] == ["messages", "updates"]


def test_what_a_failed_or_reused_task_wrote_is_not_shown(chunks: Chunks, saver: SqliteSaver) -> None:
    tries = []

    def breaks(state: Any) -> Any:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("broken")
        return {"messages": AIMessage("mended", id="b1")}

    graph = StateGraph(MessagesState).add_node("a", lambda state: {"messages": AIMessage("a", id="a1")})
    graph.add_node("b", breaks).add_edge(START, "a").add_edge(START, "b")
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        chunks(compiled, GIVEN, thread(), stream_mode="messages")
    assert said(chunks(compiled, None, thread(), stream_mode="messages")) == [("b1", "mended")]


# -- by hand ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[True, False], ids=["langchain", "plain"])
def with_langchain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run with langchain-core and, as far as the engine can tell, without."""
    if not request.param:
        monkeypatch.setattr(message_shapes, "langchain", lambda: None)
        monkeypatch.setattr("stepwell.runtime.stream.messages.langchain", lambda: None)
    return bool(request.param)


def test_a_node_streams_messages_by_hand(with_langchain: bool, chunks: Chunks) -> None:
    def speak(state: Any, runtime: Runtime[Any]) -> Any:
        for word in ("big", "world"):
            runtime.stream_message({"role": "ai", "content": word, "id": "w1"}, model="mine")
        return {"messages": [{"role": "ai", "content": "big world", "id": "w1"}, {"role": "ai", "content": "more"}]}

    found = chunks(talk(("speak", speak)).compile(), {"messages": "hi"}, stream_mode="messages")
    assert [message["content"] for message, _ in found[:2]] == ["big", "world"]
    ((last, metadata),) = found[2:]
    assert (last.content if with_langchain else last["content"]) == "more"
    assert (found[0][1]["model"], found[0][1]["langgraph_node"], "model" in metadata) == ("mine", "speak", False)


def test_what_is_no_message_can_be_streamed_by_hand_too(chunks: Chunks) -> None:
    def speak(state: Any, runtime: Runtime[Any]) -> None:
        runtime.stream_message("a bare token")

    assert [m for m, _ in chunks(talk(("speak", speak)).compile(), GIVEN, stream_mode="messages")] == ["a bare token"]
