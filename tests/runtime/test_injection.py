"""What a node can ask for beside the state: config, runtime, writer, store, and the caller's context variables."""

import contextvars
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ValidationError

from stepwell import (
    START,
    InvalidConfigError,
    Runtime,
    ServerInfo,
    SqliteSaver,
    StateGraph,
    StreamWriter,
    get_config,
    get_runtime,
    get_store,
    get_stream_writer,
)
from tests.runtime.graphs import Call, Log, anote, chain, fan, note, thread

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


# -- context variables ------------------------------------------------------------------------------------------------


def test_context_variables_reach_nodes_on_every_thread_and_loop(call: Call) -> None:
    def look(state: Log) -> dict[str, list[str]]:
        return {"log": [user.get()]}

    async def alook(state: Log) -> dict[str, list[str]]:
        return {"log": [user.get()]}

    graph = fan(("a", look), ("b", alook), ("c", look)).add_node("d", look).add_node("e", alook)
    graph.add_edge(["a", "b", "c"], "d").add_edge("d", "e")
    token = user.set("ada")
    try:
        assert call(graph.compile(), {})["log"] == ["ada"] * 5
    finally:
        user.reset(token)


def test_what_a_node_sets_stays_its_own(call: Call) -> None:
    def rename(state: Log) -> dict[str, list[str]]:
        before = user.get()
        user.set("someone else")
        return {"log": [before]}

    assert call(chain(("a", rename), ("b", rename)).compile(), {})["log"] == ["nobody", "nobody"]
    assert user.get() == "nobody"


# -- injected by name or annotation -----------------------------------------------------------------------------------


def test_a_node_gets_the_callers_config_with_the_ids_of_the_run(call: Call, saver: SqliteSaver) -> None:
    seen: list[Any] = []

    def look(state: Log, config: RunnableConfig) -> None:
        seen.append(config)

    def annotated(state: Log, settings: RunnableConfig) -> None:
        seen.append(settings)

    graph = chain(("look", look), ("annotated", annotated)).compile(checkpointer=saver)
    call(graph, {}, thread(tags=["x"], metadata={"team": "blue"}, recursion_limit=9))
    assert [config["metadata"]["langgraph_node"] for config in seen] == ["look", "annotated"]
    for config in seen:
        assert config["configurable"]["thread_id"] == "t"
        assert config["metadata"]["team"] == "blue"
        assert (config["tags"], config["recursion_limit"]) == (["x"], 9)


def test_routers_get_the_same_as_nodes(call: Call) -> None:
    def choose(state: Log, config: RunnableConfig, runtime: Runtime[Any]) -> str:
        return str(config["configurable"]["way"]) + str(runtime.context)

    graph = StateGraph(Log).add_node("b1", note("b1")).add_node("c1", note("c1"))
    graph.add_conditional_edges(START, choose, ["b1", "c1"])
    assert call(graph.compile(), {}, {"configurable": {"way": "c"}}, context=1)["log"] == ["c1"]


def test_the_runtime_says_where_a_node_stands(call: Call, saver: SqliteSaver) -> None:
    seen: list[Any] = []

    def look(state: Log, runtime: Runtime[Any]) -> None:
        seen.append(runtime.execution_info)

    graph = chain(("look", look)).compile(checkpointer=saver)
    call(graph, {}, thread(run_id="run-1"))
    (info,) = seen
    before, after = [snapshot for snapshot in graph.get_state_history(thread()) if snapshot.metadata["step"] >= 0][::-1]
    assert (info.thread_id, info.run_id, info.node_attempt, info.checkpoint_ns) == ("t", "run-1", 1, "")
    assert info.checkpoint_id == before.config["configurable"]["checkpoint_id"]
    assert info.task_id == before.tasks[0].id
    assert after.run_id == "run-1"


def test_a_node_can_pass_its_config_on_to_another_graph(call: Call) -> None:
    inner = chain(("inner", note("inner"))).compile()

    def outer(state: Log, config: RunnableConfig) -> Any:
        return inner.invoke({}, config)

    assert call(chain(("outer", outer)).compile(), {}, {"tags": ["x"]}) == {"log": ["inner"]}


def test_a_node_can_run_another_thread_with_its_config(call: Call, saver: SqliteSaver) -> None:
    """Of the address only the thread is handed on: a checkpoint of this thread is none of another."""
    inner = chain(("inner", note("inner"))).compile(checkpointer=saver, name="inner")

    def outer(state: Log, config: RunnableConfig) -> Any:
        own = {**config["configurable"], "thread_id": "child"}
        return inner.invoke({}, {**config, "configurable": own})

    graph = chain(("outer", outer)).compile(checkpointer=saver, name="outer")
    assert call(graph, {}, thread()) == {"log": ["inner"]}
    assert inner.get_state(thread("child")).values == {"log": ["inner"]}
    first = list(graph.get_state_history(thread()))[-1]
    assert call(graph, None, first.config)["log"] == ["inner", "inner"], "a replay hands on no checkpoint either"


@pytest.mark.parametrize(
    ("configurable", "seen"),
    [
        ({}, None),
        ({"assistant_id": "a", "graph_id": "g"}, ServerInfo("a", "g")),
        ({"graph_id": "g", "langgraph_auth_user": {"identity": "ada"}}, ServerInfo("", "g", {"identity": "ada"})),
    ],
)
def test_the_runtime_says_what_a_server_runs_and_for_whom(
    configurable: Any, seen: ServerInfo | None, call: Call
) -> None:
    found: list[ServerInfo | None] = []

    def look(state: Log, runtime: Runtime[Any]) -> None:
        found.append(runtime.server_info)

    call(chain(("look", look)).compile(), {}, {"configurable": configurable})
    assert found == [seen]


def test_a_runtime_can_be_copied_with_other_fields() -> None:
    runtime = Runtime(context={"lang": "en"}, previous=1)
    assert runtime.override(previous=2) == Runtime(context={"lang": "en"}, previous=2)
    assert runtime.merge(Runtime(store="items")) == Runtime(context={"lang": "en"}, store="items", previous=1)
    assert runtime.merge(Runtime(context={"lang": "de"})).context == {"lang": "de"}
    with pytest.raises(TypeError):
        runtime.override(colour="red")


def test_the_writer_and_the_store_are_given_where_asked_for(saver: SqliteSaver) -> None:
    shelf = {"key": "value"}

    def use(state: Log, writer: StreamWriter, store: Any) -> dict[str, list[str]]:
        writer({"progress": 1})
        return {"log": [store["key"]]}

    graph = chain(("use", use)).compile(checkpointer=saver, store=shelf)
    assert list(graph.stream({}, thread(), stream_mode="custom")) == [{"progress": 1}]
    assert graph.get_state(thread()).values == {"log": ["value"]}


def test_a_writer_without_a_stream_writes_nowhere(call: Call) -> None:
    def use(state: Log, writer: StreamWriter) -> dict[str, list[str]]:
        writer("ignored")
        return {"log": ["used"]}

    assert call(chain(("use", use)).compile(), {}) == {"log": ["used"]}


def test_a_store_that_is_needed_and_missing_is_named(call: Call) -> None:
    def use(state: Log, *, store: Any) -> None:
        return None

    def could(state: Log, *, store: Any = None) -> dict[str, list[str]]:
        return {"log": [str(store)]}

    with pytest.raises(InvalidConfigError, match="Missing required config key 'store' for 'use'"):
        call(chain(("use", use)).compile(), {})
    assert call(chain(("could", could)).compile(), {}) == {"log": ["None"]}


# -- the run's context ------------------------------------------------------------------------------------------------


@dataclass
class Tenant:
    name: str
    level: int = 1


class Strict(BaseModel):
    name: str
    level: int = 1


class Loose(TypedDict):
    name: str


def context_graph(schema: Any) -> Any:
    def look(state: Log, runtime: Runtime[Any]) -> dict[str, list[str]]:
        return {"log": [repr(runtime.context)]}

    graph = StateGraph(Log, context_schema=schema).add_node("look", look).add_edge(START, "look")
    return graph.compile()


@pytest.mark.parametrize(
    ("schema", "given", "seen"),
    [
        (Tenant, {"name": "a"}, "Tenant(name='a', level=1)"),
        (Tenant, Tenant("b", 2), "Tenant(name='b', level=2)"),
        (Strict, {"name": "a", "level": "3"}, "Strict(name='a', level=3)"),
        (Loose, {"name": "a"}, "{'name': 'a'}"),
        (None, {"name": "a"}, "{'name': 'a'}"),
        (Tenant, None, "None"),
    ],
)
def test_the_context_becomes_what_its_schema_says(schema: Any, given: Any, seen: str, call: Call) -> None:
    assert call(context_graph(schema), {}, context=given)["log"] == [seen]


def test_a_context_that_does_not_fit_is_refused_before_anything_runs(call: Call) -> None:
    with pytest.raises(ValidationError):
        call(context_graph(Strict), {}, context={"name": "a", "level": "high"})
    with pytest.raises(TypeError):
        call(context_graph(Tenant), {}, context={"nom": "a"})


# -- reached without asking -------------------------------------------------------------------------------------------


def test_config_runtime_store_and_writer_can_be_fetched_from_anywhere_in_a_node(call: Call) -> None:
    def deep() -> list[str]:
        get_stream_writer()("ignored")
        return [get_config()["metadata"]["langgraph_node"], str(get_store()), str(get_runtime().context)]

    async def adeep(state: Log) -> dict[str, list[str]]:
        return {"log": deep()}

    graph = chain(("sync", lambda state: {"log": deep()}), ("async", adeep)).compile(store="shelf")
    assert call(graph, {}, context="ctx")["log"] == ["sync", "shelf", "ctx", "async", "shelf", "ctx"]


@pytest.mark.parametrize("fetch", [get_config, get_runtime, get_store, get_stream_writer])
def test_outside_a_node_there_is_nothing_to_fetch(fetch: Any) -> None:
    with pytest.raises(RuntimeError, match=r"Called get_\w+ outside of a runnable context"):
        fetch()


def test_bound_config_is_laid_under_every_call(saver: SqliteSaver) -> None:
    graph = chain(("a", anote("a"))).compile(checkpointer=saver).with_config(thread("bound"))
    assert graph.invoke({}) == {"log": ["a"]}
    assert graph.get_state(None).values == {"log": ["a"]}
    assert graph.invoke({}, thread("other")) == {"log": ["a"]}
