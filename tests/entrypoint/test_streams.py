"""What a consumer of a workflow's stream sees, mode by mode."""

from __future__ import annotations

from typing import Any

from stepwell import Command, InMemorySaver, StreamWriter, entrypoint, interrupt
from tests.runtime.graphs import Chunks, thread

THREAD = thread("t")


def work(value: Any, *, previous: Any, writer: StreamWriter) -> Any:
    writer("working")
    return entrypoint.final(value=[value, previous], save=value)


def test_updates_show_what_it_returned(memory_saver: InMemorySaver, chunks: Chunks) -> None:
    graph = entrypoint(checkpointer=memory_saver)(work)
    assert chunks(graph, 1, THREAD) == [{"work": [1, None]}]
    assert chunks(graph, None, THREAD) == []


def test_values_are_shown_once(memory_saver: InMemorySaver, chunks: Chunks) -> None:
    graph = entrypoint(checkpointer=memory_saver)(work)
    assert chunks(graph, 1, THREAD, stream_mode="values") == [[1, None]]
    assert chunks(graph, 2, THREAD, stream_mode="values") == [[2, 1]]


def test_a_returned_none_is_shown(memory_saver: InMemorySaver, chunks: Chunks) -> None:
    graph = entrypoint(checkpointer=memory_saver)(lambda value: None)
    wanted = [("updates", {"<lambda>": None}), ("values", None)]
    assert chunks(graph, 1, THREAD, stream_mode=["updates", "values"]) == wanted


def test_a_pause_shows_the_question_and_a_resumed_run_the_state_it_begins_with(
    memory_saver: InMemorySaver, chunks: Chunks
) -> None:
    graph = entrypoint(checkpointer=memory_saver)(lambda value: [value, interrupt("?")])
    (mode, update), (_, values) = chunks(graph, 1, THREAD, stream_mode=["updates", "values"])
    assert mode == "updates"
    assert update["__interrupt__"][0].value == values["__interrupt__"][0].value == "?"
    resumed = chunks(graph, Command(resume=2), THREAD, stream_mode=["updates", "values"])
    assert resumed == [("values", None), ("updates", {"<lambda>": [1, 2]}), ("values", [1, 2])]


def test_tasks_show_its_input_and_what_it_returned(memory_saver: InMemorySaver, chunks: Chunks) -> None:
    graph = entrypoint(checkpointer=memory_saver)(work)
    started, finished = chunks(graph, {"a": 1}, THREAD, stream_mode="tasks")
    assert (started["name"], started["input"], started["triggers"]) == ("work", {"a": 1}, ("__start__",))
    assert (finished["name"], finished["result"], finished["error"]) == ("work", {"__end__": [{"a": 1}, None]}, None)
    assert started["id"] == finished["id"]


def test_checkpoints_show_the_input_and_the_outcome(
    memory_saver: InMemorySaver, chunks: Chunks, any_durability: str
) -> None:
    graph = entrypoint(checkpointer=memory_saver)(work)
    shown = chunks(graph, 1, THREAD, stream_mode="checkpoints", durability=any_durability)
    assert [(each["metadata"]["source"], each["metadata"]["step"], each["next"], each["values"]) for each in shown] == [
        ("input", -1, ["work"], None),
        ("loop", 0, [], [1, None]),
    ]


def test_custom_shows_what_it_writes(chunks: Chunks) -> None:
    assert chunks(entrypoint()(work), 1, stream_mode="custom") == ["working"]


def test_messages_show_those_it_returns_and_not_those_it_saves(chunks: Chunks) -> None:
    said = {"role": "assistant", "content": "hello", "id": "1"}
    kept = {"role": "system", "content": "secret", "id": "2"}
    graph = entrypoint()(lambda value: entrypoint.final(value=[said], save=[kept]))
    assert [message for message, _ in chunks(graph, 1, stream_mode="messages")] == [said]


def test_output_keys_may_ask_for_what_is_saved(memory_saver: InMemorySaver) -> None:
    graph = entrypoint(checkpointer=memory_saver)(work)
    assert graph.invoke(1, THREAD, output_keys="__previous__") == 1


def test_version_2_hands_out_the_bare_value(memory_saver: InMemorySaver) -> None:
    graph = entrypoint(checkpointer=memory_saver)(work)
    assert graph.invoke(1, THREAD, version="v2").value == [1, None]
    assert [part["data"] for part in graph.stream(2, THREAD, stream_mode="values", version="v2")] == [[2, 1]]
