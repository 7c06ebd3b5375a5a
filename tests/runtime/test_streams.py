"""Streams: what each mode hands out, when, and that nothing is handed out before it is durable."""

import asyncio
import operator
import threading
from contextvars import copy_context
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import pytest

from stepwell import (
    START,
    Command,
    InvalidConfigError,
    Send,
    SqliteSaver,
    StateGraph,
    StreamWriter,
    UnserializableValueError,
    get_stream_writer,
    points,
)
from tests.runtime.graphs import Chunks, Flaky, Log, anote, ask, chain, fan, letters, note, thread

# -- values and updates -----------------------------------------------------------------------------------------------


def test_updates_are_what_each_node_returned(chunks: Chunks, saver: SqliteSaver, any_durability: str) -> None:
    graph = chain(("a", note("a")), ("b", lambda state: None), ("c", anote("c"))).compile(checkpointer=saver)
    found = chunks(graph, {}, thread(), durability=any_durability)
    assert found == [{"a": {"log": ["a"]}}, {"b": None}, {"c": {"log": ["c"]}}]


def test_values_are_the_state_after_each_superstep(chunks: Chunks, saver: SqliteSaver, any_durability: str) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    found = chunks(graph, {"log": ["in"]}, thread(), stream_mode="values", durability=any_durability)
    assert found == [{"log": ["in"]}, {"log": ["in", "a"]}, {"log": ["in", "a", "b"]}]


def test_a_superstep_that_changes_nothing_shows_no_values(chunks: Chunks) -> None:
    graph = chain(("a", lambda state: None), ("b", note("b"))).compile()
    assert chunks(graph, {"log": []}, stream_mode="values") == [{"log": []}, {"log": ["b"]}]


def test_an_input_that_writes_nothing_shows_no_values(chunks: Chunks, saver: SqliteSaver, any_durability: str) -> None:
    graph = letters("a").compile(checkpointer=saver, interrupt_before=["a"])
    options = {"stream_mode": "values", "durability": any_durability}
    assert chunks(graph, {}, thread(), **options) == []
    assert chunks(graph, None, thread(), **options) == [{"log": []}, {"log": ["a"]}]


def test_values_show_the_whole_state_where_invoke_returns_the_output(chunks: Chunks) -> None:
    class Wide(Log, total=False):
        inner: int

    graph: Any = StateGraph(Wide, output_schema=Log).add_node("a", lambda state: {"inner": 2}).add_edge(START, "a")
    compiled = graph.compile()
    assert chunks(compiled, {"log": ["in"], "inner": 1}, stream_mode="values") == [
        {"log": ["in"], "inner": 1},
        {"log": ["in"], "inner": 2},
    ]
    assert compiled.invoke({"log": ["in"]}) == {"log": ["in"]}


def test_updates_come_in_the_order_in_which_tasks_finish() -> None:
    finished = threading.Event()

    def slow(state: Log) -> dict[str, list[str]]:
        assert finished.wait(60)
        return {"log": ["a"]}

    found = []
    for chunk in fan(("a", slow), ("b", note("b"))).compile().stream({}):
        found += list(chunk)
        finished.set()
    assert found == ["b", "a"]


def test_several_writes_of_one_node_are_shown_one_by_one(chunks: Chunks) -> None:
    def twice(state: Log) -> list[Any]:
        return [{"log": ["1"]}, Command(update={"log": ["2"]})]

    assert chunks(chain(("twice", twice)).compile(), {}) == [{"twice": [{"log": ["1"]}, {"log": ["2"]}]}]


def test_several_writes_to_a_state_without_keys_are_shown_bare(chunks: Chunks) -> None:
    def twice(state: list[str]) -> list[Any]:
        return [Command(update=["1"]), Command(update=["2"])]

    graph = StateGraph(Annotated[list, operator.add]).add_node("twice", twice).add_edge(START, "twice")
    assert chunks(graph.compile(), []) == [{"twice": [["1"], ["2"]]}]


def test_each_send_has_an_update_of_its_own(chunks: Chunks) -> None:
    graph = StateGraph(Log).add_node("s", lambda arg: {"log": [arg]})
    graph.add_conditional_edges(START, lambda state: [Send("s", "x"), Send("s", "y")], ["s"])
    found = chunks(graph.compile(), {}, config={"max_concurrency": 1})
    assert found == [{"s": {"log": ["x"]}}, {"s": {"log": ["y"]}}]


def test_output_keys_choose_what_is_shown(chunks: Chunks) -> None:
    graph = letters("a").compile()
    assert chunks(graph, {"log": ["in"]}, stream_mode="values", output_keys="log") == [["in"], ["in", "a"]]
    assert chunks(graph, {}, output_keys=["log"]) == [{"a": {"log": ["a"]}}]


# -- modes ------------------------------------------------------------------------------------------------------------


def test_a_list_of_modes_labels_each_chunk(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    found = chunks(graph, {"log": ["in"]}, thread(), stream_mode=["values", "updates", "custom"])
    assert found == [
        ("values", {"log": ["in"]}),
        ("updates", {"a": {"log": ["a"]}}),
        ("values", {"log": ["in", "a"]}),
    ]
    assert chunks(graph, {}, thread("one"), stream_mode=["updates"]) == [("updates", {"a": {"log": ["a"]}})]


def test_a_tuple_of_modes_labels_each_chunk_too(chunks: Chunks) -> None:
    assert chunks(letters("a").compile(), {}, stream_mode=("updates",)) == [("updates", {"a": {"log": ["a"]}})]


def test_invoke_with_another_mode_returns_the_chunks(saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    assert graph.invoke({}, thread(), stream_mode="updates") == [{"a": {"log": ["a"]}}, {"b": {"log": ["b"]}}]
    assert asyncio.run(graph.ainvoke({}, thread("2"), stream_mode=["values"]))[-1] == ("values", {"log": ["a", "b"]})


def test_no_mode_is_the_usual_one_as_in_langgraph(chunks: Chunks) -> None:
    graph = letters("a").compile()
    assert chunks(graph, {}, stream_mode=None) == graph.invoke({}, stream_mode=None) == [{"a": {"log": ["a"]}}]


@pytest.mark.parametrize("modes", ["update", ["values", "nothing"], ["values", None], [], 3])
def test_an_unknown_mode_is_refused(modes: Any, chunks: Chunks) -> None:
    with pytest.raises(InvalidConfigError, match=r"unknown stream mode|stream_mode is a stream mode or a list"):
        chunks(letters("a").compile(), {}, stream_mode=modes)


def test_tasks_are_shown_as_they_start_and_as_they_end(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("b", note("b"))).compile(checkpointer=saver)
    found = chunks(graph, {"log": ["in"]}, thread(), stream_mode="tasks")
    ids = [task.id for s in reversed(list(graph.get_state_history(thread()))) for task in s.tasks if task.name != START]
    start, end = found[:2]
    assert start == {"id": ids[0], "name": "a", "input": {"log": ["in"]}, "triggers": ("branch:to:a",)}
    assert end == {"id": ids[0], "name": "a", "error": None, "result": {"log": ["a"]}, "interrupts": []}
    assert [(chunk["id"], "input" in chunk) for chunk in found[2:]] == [(ids[1], True), (ids[1], False)]


def test_a_task_that_fails_or_asks_says_so_when_it_ends(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = fan(("ask", ask("ask")), ("flaky", Flaky("flaky"))).compile(checkpointer=saver)
    seen: list[Any] = []
    with pytest.raises(ValueError, match="broken"):
        for chunk in graph.stream({}, thread(), stream_mode="tasks"):
            seen.append(chunk)
    ends = {chunk["name"]: chunk for chunk in seen if "result" in chunk}
    assert [question["value"] for question in ends["ask"]["interrupts"]] == ["ask"]
    assert (ends["flaky"]["error"], ends["flaky"]["result"]) == ("ValueError('flaky is broken')", {})


def test_a_task_is_shown_before_it_runs(saver: SqliteSaver) -> None:
    ran = []
    graph = chain(("a", lambda state: ran.append(1))).compile(checkpointer=saver)
    chunks = graph.stream({}, thread(), stream_mode="tasks")
    assert "input" in next(chunks)
    assert ran == []
    assert "result" in next(chunks)


# -- pauses, resumes, failures ----------------------------------------------------------------------------------------


def test_a_question_is_the_last_chunk(chunks: Chunks, saver: SqliteSaver, any_durability: str) -> None:
    graph = chain(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=saver)
    modes = ["updates", "values"]
    found = chunks(graph, {"log": []}, thread(), stream_mode=modes, durability=any_durability)
    (question,) = graph.get_state(thread()).interrupts
    assert found[-2:] == [
        ("updates", {"__interrupt__": (question,)}),
        ("values", {"log": ["a"], "__interrupt__": (question,)}),
    ]
    answered = chunks(graph, Command(resume=1), thread(), durability=any_durability)
    assert answered == [{"ask": {"log": ["ask=1"]}}]


def test_what_is_reused_is_marked_as_cached(chunks: Chunks, saver: SqliteSaver, any_durability: str) -> None:
    graph = fan(("a", note("a")), ("b", Flaky("b"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        chunks(graph, {}, thread(), durability=any_durability)
    assert chunks(graph, None, thread(), durability=any_durability) == [
        {"a": {"log": ["a"]}, "__metadata__": {"cached": True}},
        {"b": {"log": ["b"]}},
    ]


def test_what_is_reused_is_not_announced_again(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = fan(("a", note("a")), ("b", Flaky("b"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        chunks(graph, {}, thread())
    assert [chunk["name"] for chunk in chunks(graph, None, thread(), stream_mode="tasks")] == ["b", "b"]


@pytest.mark.parametrize("mode", ["updates", "values", "tasks"])
def test_C4_a_question_that_was_streamed_is_on_the_thread_when_the_consumer_stops_there(
    mode: str, saver: SqliteSaver, any_durability: str
) -> None:
    graph = chain(("a", note("a")), ("ask", ask("ask"))).compile(checkpointer=saver)
    for chunk in graph.stream({}, thread(), stream_mode=mode, durability=any_durability):
        if "__interrupt__" in chunk or chunk.get("interrupts"):
            break
    assert [question.value for question in graph.get_state(thread()).interrupts] == ["ask"]
    assert graph.invoke(Command(resume="yes"), thread())["log"] == ["a", "ask='yes'"]


def test_a_resumed_stream_of_values_begins_with_the_current_state(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver, interrupt_before=["b"])
    chunks(graph, {}, thread())
    assert chunks(graph, None, thread(), stream_mode="values") == [{"log": ["a"]}, {"log": ["a", "b"]}]


def test_what_was_done_before_a_failure_is_handed_out_before_it_is_raised(saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")), ("b", Flaky("b"))).compile(checkpointer=saver)
    found = []
    with pytest.raises(ValueError, match="broken"):
        for chunk in graph.stream({}, thread()):
            found.append(chunk)
    assert found == [{"a": {"log": ["a"]}}]


# -- custom -----------------------------------------------------------------------------------------------------------


def test_custom_chunks_are_live(saver: SqliteSaver) -> None:
    """INV-11: the consumer has the chunk while the node that wrote it still waits for the consumer."""
    may_finish = threading.Event()

    def node(state: Log, writer: StreamWriter) -> dict[str, list[str]]:
        writer("half")
        assert may_finish.wait(60)
        return {"log": ["done"]}

    found = []
    for mode, chunk in (
        chain(("node", node)).compile(checkpointer=saver).stream({}, thread(), stream_mode=["custom", "updates"])
    ):
        found.append((mode, chunk))
        may_finish.set()
    assert found == [("custom", "half"), ("updates", {"node": {"log": ["done"]}})]


async def test_custom_chunks_are_live_on_a_loop_too(saver: SqliteSaver) -> None:
    may_finish = asyncio.Event()

    async def node(state: Log) -> dict[str, list[str]]:
        get_stream_writer()("half")
        await may_finish.wait()
        return {"log": ["done"]}

    found = []
    async for chunk in chain(("node", node)).compile(checkpointer=saver).astream({}, thread(), stream_mode="custom"):
        found.append(chunk)
        may_finish.set()
    assert found == ["half"]


def test_custom_chunks_come_from_helper_threads_and_tasks(chunks: Chunks) -> None:
    def threads(state: Log) -> None:
        def work(number: int) -> None:
            get_stream_writer()(number)

        for number in range(5):
            helper = threading.Thread(target=copy_context().run, args=(work, number))
            helper.start()
            helper.join()

    async def tasks(state: Log) -> None:
        async def work(number: int) -> None:
            get_stream_writer()(number)

        await asyncio.gather(*map(work, range(5, 10)), asyncio.to_thread(get_stream_writer(), 10))

    graph = chain(("threads", threads), ("tasks", tasks)).compile()
    assert sorted(chunks(graph, {}, stream_mode="custom")) == list(range(11))


# -- publish after durable --------------------------------------------------------------------------------------------


def test_nothing_is_handed_out_before_it_is_durable(tmp_path: Path) -> None:
    """INV-11: whenever a chunk arrives, a second connection finds on disk what the chunk says."""
    with SqliteSaver(tmp_path / "threads.db") as saver, SqliteSaver(tmp_path / "threads.db") as other:
        graph = fan(("a", note("a")), ("b", note("b"))).add_node("c", note("c")).add_edge(["a", "b"], "c")
        graph.add_node("ask", ask("ask")).add_edge("c", "ask")
        compiled, looking = (graph.compile(checkpointer=which, name="g") for which in (saver, other))
        seen = 0
        modes = ["updates", "values", "tasks", "checkpoints", "debug"]
        for mode, chunk in compiled.stream({"log": []}, thread(), stream_mode=modes):
            seen += durable(looking, mode, chunk)
        assert seen == 3 + 4 + 4 + 1 + 4 + 8, "updates, values, task results, the question, checkpoints, both again"
        assert looking.get_state(thread()) == compiled.get_state(thread())


def test_a_success_that_cannot_be_stored_is_shown_as_a_failure_while_a_sibling_still_runs(
    any_durability: str, saver: SqliteSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = threading.Event()
    monkeypatch.setattr(points, "hook", lambda point: settled.set() if point == points.TASK_FINISHED else None)

    def slow(state: Log) -> Any:
        assert settled.wait(60)
        return {"log": ["slow"]}

    graph = fan(("refused", lambda state: {"log": [object()]}), ("slow", slow)).compile(checkpointer=saver)
    shown: list[Any] = []
    with pytest.raises(UnserializableValueError):
        for mode, chunk in graph.stream({}, thread(), stream_mode=["updates", "tasks"], durability=any_durability):
            if mode == "updates":
                shown.append(chunk)
            elif "result" in chunk:
                shown.append((chunk["name"], bool(chunk["error"])))
    assert shown == [("refused", True), {"slow": {"log": ["slow"]}}, ("slow", False)]


@pytest.mark.parametrize("sibling", [Flaky, ask, note], ids=["fails", "asks", "succeeds"])
def test_a_success_that_cannot_be_stored_is_shown_as_the_failure_it_is(
    sibling: Any, saver: SqliteSaver, any_durability: str
) -> None:
    """INV-11: what a chunk says of a task is what its thread says."""
    graph = fan(("a", lambda state: {"log": [object()]}), ("b", sibling("b"))).compile(checkpointer=saver)
    seen: list[Any] = []
    with pytest.raises(UnserializableValueError):
        for chunk in graph.stream({}, thread(), stream_mode=["updates", "tasks"], durability=any_durability):
            seen.append(chunk)
    tasks = {task.name: task for task in graph.get_state(thread()).tasks}
    ends = {chunk["name"]: chunk for mode, chunk in seen if mode == "tasks" and "result" in chunk}
    assert {name: (end["error"], end["result"] or None) for name, end in ends.items()} == {
        name: (task.error, task.result) for name, task in tasks.items()
    }
    shown = [chunk for mode, chunk in seen if mode == "updates"]
    assert shown == [{name: task.result} for name, task in tasks.items() if task.result]


def durable(looking: Any, mode: str, chunk: Any) -> int:
    """Return 1 if the chunk promises something and all of it is on disk, 0 if it promises nothing."""
    head = looking.get_state(thread())
    results = [task for s in looking.get_state_history(thread()) for task in s.tasks]
    if mode == "debug":
        return durable(looking, f"{chunk['type']}s", chunk["payload"])
    if mode == "checkpoints":
        stored = looking.get_state(chunk["config"])
        shown = (chunk["values"], chunk["metadata"], tuple(chunk["next"]), chunk["parent_config"])
        assert shown == (stored.values, stored.metadata, stored.next, stored.parent_config)
    elif mode == "values":
        assert head.values == {key: value for key, value in chunk.items() if key != "__interrupt__"}
    elif "__interrupt__" in chunk:
        assert head.interrupts == chunk["__interrupt__"]
    elif mode == "updates":
        ((name, update),) = chunk.items()
        assert (name, update) in [(task.name, task.result) for task in results]
    elif "result" in chunk:
        known = {task.id: task for task in results}[chunk["id"]]
        assert (known.result or {}, [asdict(i) for i in known.interrupts]) == (chunk["result"], chunk["interrupts"])
    else:
        return 0
    return 1
