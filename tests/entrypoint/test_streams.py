"""What a consumer of a workflow's stream sees, mode by mode."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stepwell import (
    CachePolicy,
    Command,
    EffectInDoubtError,
    EffectNotPerformed,
    InMemoryCache,
    InMemorySaver,
    SqliteSaver,
    StreamWriter,
    effect,
    entrypoint,
    events,
    interrupt,
    task,
)
from stepwell.superstep import lifecycle
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


# -- its steps --------------------------------------------------------------------------------------------------------


@task
def add(number: int, other: int = 1) -> int:
    return number + other


@task
def broken(number: int) -> int:
    raise ValueError(number)


def stepping(value: int) -> list[Any]:
    first = add(value).result()
    try:
        broken(first).result()
    except ValueError:
        answer = interrupt("?")
    return [first, answer, add(first, other=2).result()]


def test_updates_show_each_step_once_when_it_is_over(memory_saver: InMemorySaver, chunks: Chunks) -> None:
    graph = entrypoint(checkpointer=memory_saver)(stepping)
    *steps, pause = chunks(graph, 1, THREAD)
    assert steps == [{"add": 2}]
    assert pause["__interrupt__"][0].value == "?"
    assert chunks(graph, Command(resume="!"), THREAD) == [{"add": 4}, {"stepping": [2, "!", 4]}]


def test_tasks_announce_each_call_and_tell_what_came_of_what_ran(memory_saver: InMemorySaver, chunks: Chunks) -> None:
    graph = entrypoint(checkpointer=memory_saver)(stepping)

    def shown(given: Any) -> list[Any]:
        found = chunks(graph, given, THREAD, stream_mode="tasks")
        return [(each["name"], each["input"] if "input" in each else each["error"] or each["result"]) for each in found]

    assert shown(1) == [
        ("stepping", 1),
        ("add", ((1,), {})),
        ("add", {"__return__": 2}),
        ("broken", ((2,), {})),
        ("broken", "ValueError(2)"),
        ("stepping", {}),
    ]
    assert shown(Command(resume="!")) == [
        ("stepping", 1),
        ("add", ((1,), {})),
        ("broken", ((2,), {})),
        ("add", ((2,), {"other": 2})),
        ("add", {"__return__": 4}),
        ("stepping", {"__end__": [2, "!", 4]}),
    ]


def test_a_call_has_the_same_id_whenever_it_is_shown(memory_saver: InMemorySaver, chunks: Chunks) -> None:
    graph = entrypoint(checkpointer=memory_saver)(stepping)
    _, called, returned, *_ = chunks(graph, 1, THREAD, stream_mode="tasks")
    _, again, *_ = chunks(graph, Command(resume="!"), THREAD, stream_mode="tasks")
    assert called["id"] == returned["id"] == again["id"] != called["name"]


def test_a_step_is_handed_out_while_its_workflow_runs_on_and_is_on_disk_by_then(sqlite_saver: SqliteSaver) -> None:
    seen = threading.Event()

    @entrypoint(checkpointer=sqlite_saver)
    def waiting(value: int) -> int:
        add(value).result()
        assert seen.wait(20)
        return value

    stream = waiting.stream(1, THREAD)
    assert next(stream) == {"add": 2}
    with sqlite_saver.store.reading() as reader:
        newest = reader.newest("t", "")
        assert newest is not None
        assert [record.kind for record in reader.records("t", newest.seq)] == [lifecycle.STEP]
    seen.set()
    assert list(stream) == [{"waiting": 1}]


def test_what_the_cache_had_is_shown_as_cached(chunks: Chunks) -> None:
    kept = task(lambda number: number * 2, name="kept", cache_policy=CachePolicy())
    graph = entrypoint(cache=InMemoryCache())(lambda value: kept(value).result())
    assert chunks(graph, 1) == [{"kept": 2}, {"<lambda>": 2}]
    assert chunks(graph, 1) == [{"kept": 2, "__metadata__": {"cached": True}}, {"<lambda>": 2}]


def test_debug_shows_the_same_with_step_and_time(memory_saver: InMemorySaver, chunks: Chunks) -> None:
    graph = entrypoint(checkpointer=memory_saver)(lambda value: add(value).result())
    found = chunks(graph, 1, THREAD, stream_mode="debug")
    shown = [(each["type"], each["step"], each["payload"].get("name")) for each in found]
    assert shown == [
        ("checkpoint", -1, None),
        ("task", 0, "<lambda>"),
        ("task", 0, "add"),
        ("task_result", 0, "add"),
        ("task_result", 0, "<lambda>"),
        ("checkpoint", 0, None),
    ]


def test_a_checkpoint_in_exit_mode_has_its_parent_and_shows_what_is_still_open(
    memory_saver: InMemorySaver, chunks: Chunks
) -> None:
    graph = entrypoint(checkpointer=memory_saver)(lambda value: interrupt("?"))
    chunks(graph, 1, THREAD, durability="exit")
    begun, ended = chunks(graph, Command(resume=2), THREAD, stream_mode="checkpoints", durability="exit")
    assert begun["tasks"][0]["interrupts"] == ()
    assert ended["parent_config"] == begun["config"]


def test_listeners_and_the_log_are_told_of_steps(memory_saver: InMemorySaver) -> None:
    heard: list[Any] = []
    graph = entrypoint(checkpointer=memory_saver, listeners=[heard.append], events=True)(stepping)
    graph.invoke(1, THREAD)
    told = [(type(each), each.callee, each.attempt) for each in heard if isinstance(each, events.StepEvent)]
    assert told == [
        (events.StepStarted, "add", 1),
        (events.StepFinished, "add", 1),
        (events.StepStarted, "broken", 1),
        (events.StepFailed, "broken", 1),
    ]
    run_id = graph.get_state(THREAD).run_id
    assert run_id is not None
    assert [each.event for each in memory_saver.events(run_id) if isinstance(each.event, events.StepEvent)] == [
        each for each in heard if isinstance(each, events.StepEvent)
    ]


@effect(on_doubt="raise")
def pay(amount: int) -> dict[str, int]:
    if amount < 0:
        raise EffectNotPerformed("refused")
    if amount == 0:
        raise ConnectionResetError("nobody knows")
    return {"paid": amount}


def test_effects_are_shown_as_steps_are(sqlite_saver: SqliteSaver, chunks: Chunks) -> None:
    graph = entrypoint(checkpointer=sqlite_saver)(lambda amount: pay(amount))
    shown = chunks(graph, 3, THREAD, stream_mode=["updates", "tasks"])
    assert [(mode, each.get("input", each.get("result"))) for mode, each in shown if each.get("name") == "pay"] == [
        ("tasks", ((3,), {})),
        ("tasks", {"__return__": {"paid": 3}}),
    ]
    assert [each for mode, each in shown if mode == "updates"] == [{"pay": {"paid": 3}}, {"<lambda>": {"paid": 3}}]


@pytest.mark.parametrize(("amount", "raised"), [(-1, EffectNotPerformed), (0, EffectInDoubtError)])
def test_an_effect_that_raises_is_told(sqlite_saver: SqliteSaver, amount: int, raised: type[Exception]) -> None:
    heard: list[Any] = []
    graph = entrypoint(checkpointer=sqlite_saver, listeners=[heard.append])(lambda amount: pay(amount))
    with pytest.raises(raised):
        graph.invoke(amount, THREAD)
    told = [type(each) for each in heard if isinstance(each, events.StepEvent)]
    assert told == [events.StepStarted, events.StepFailed]
