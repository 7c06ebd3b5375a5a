"""The stream modes `checkpoints` and `debug`: every checkpoint as `get_state` shows it, and the tasks between them."""

from datetime import datetime
from typing import Any

import pytest

from stepwell import START, Command, RetryPolicy, SqliteSaver
from tests.runtime.graphs import Chunks, Flaky, ask, chain, fan, letters, note, thread


def as_payload(snapshot: Any, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "config": snapshot.config,
        "parent_config": snapshot.parent_config,
        "values": snapshot.values,
        "metadata": snapshot.metadata,
        "next": list(snapshot.next),
        "tasks": tasks,
    }


def fresh(snapshot: Any) -> list[dict[str, Any]]:
    """Return the tasks of a checkpoint on which nothing has run yet."""
    return [{"id": task.id, "name": task.name, "interrupts": (), "state": None} for task in snapshot.tasks]


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_every_checkpoint_is_shown_as_the_history_shows_it(durability: str, chunks: Chunks, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    config = thread(metadata={"team": "blue"})
    found = chunks(graph, {"log": ["in"]}, config, stream_mode="checkpoints", durability=durability)
    history = list(graph.get_state_history(thread()))[::-1]
    assert found == [as_payload(snapshot, fresh(snapshot)) for snapshot in history]
    assert [payload["next"] for payload in found] == [[START], ["a"], ["b"], []]


def test_a_second_input_follows_the_first_runs_last_checkpoint(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    graph.invoke({}, thread())
    last = graph.get_state(thread()).config
    found = chunks(graph, {}, thread(), stream_mode="checkpoints")
    assert found[0]["parent_config"] == last
    assert [payload["metadata"]["step"] for payload in found] == [2, 3, 4]


def test_a_router_at_the_entry_has_the_raw_input_checkpoint_to_itself(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = chain(("a", note("a")))
    graph.add_conditional_edges(START, lambda state: "a", ["a"])
    found = chunks(graph.compile(checkpointer=saver), {"log": ["in"]}, thread(), stream_mode=["values", "checkpoints"])
    assert [(mode, payload["log"] if mode == "values" else payload["metadata"]["step"]) for mode, payload in found] == [
        ("checkpoints", -1),
        ("values", ["in"]),
        ("checkpoints", 0),
        ("values", ["in", "a"]),
        ("checkpoints", 1),
    ]


def test_a_resumed_run_begins_with_the_checkpoint_it_stands_on(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = fan(("ask", ask("ask")), ("b", note("b"))).compile(checkpointer=saver)
    graph.invoke({}, thread())
    before = graph.get_state(thread())
    found = chunks(graph, Command(resume="yes"), thread(), stream_mode="checkpoints")
    assert [payload["metadata"]["step"] for payload in found] == [0, 1]
    assert found[0]["config"] == before.config
    tasks = {task["name"]: task for task in found[0]["tasks"]}
    assert tasks["b"]["result"] == {"log": ["b"]}
    assert found[1]["parent_config"] == before.config


def test_the_checkpoint_of_a_failure_tells_of_it_when_the_run_goes_on(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = chain(("a", Flaky("a"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        chunks(graph, {}, thread(), stream_mode="checkpoints")
    found = chunks(graph, None, thread(), stream_mode="checkpoints")
    (task,) = found[0]["tasks"]
    assert task == {"id": task["id"], "name": "a", "error": "ValueError('a is broken')", "state": None}
    assert found[1]["values"] == {"log": ["a"]}


def test_a_replay_shows_the_fork_it_stands_on(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    older = next(s for s in graph.get_state_history(thread()) if s.next == ("b",))
    found = chunks(graph, None, older.config, stream_mode="checkpoints")
    assert [payload["metadata"]["source"] for payload in found] == ["fork", "loop"]
    assert found[0]["parent_config"] == older.config
    assert found[-1]["config"] == graph.get_state(thread()).config


def test_in_exit_mode_only_the_last_checkpoint_shown_is_stored(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    start = graph.get_state(thread()).config
    found = chunks(graph, {}, thread(), stream_mode="checkpoints", durability="exit")
    assert [payload["next"] for payload in found] == [["a"], ["b"], []]
    assert [payload["parent_config"] for payload in found] == [start] * 3
    stored = {snapshot.config["configurable"]["checkpoint_id"] for snapshot in graph.get_state_history(thread())}
    assert [payload["config"]["configurable"]["checkpoint_id"] in stored for payload in found] == [False, False, True]


def test_without_a_saver_there_are_no_checkpoints_to_show(chunks: Chunks) -> None:
    graph = letters("a").compile()
    assert chunks(graph, {}, stream_mode="checkpoints") == []
    assert [payload["type"] for payload in chunks(graph, {}, stream_mode="debug")] == ["task", "task_result"]


def test_debug_wraps_checkpoints_and_tasks_with_step_and_time(chunks: Chunks, saver: SqliteSaver) -> None:
    graph = letters("ab").compile(checkpointer=saver)
    found = chunks(graph, {}, thread(), stream_mode=["debug", "tasks", "checkpoints"])
    wrapped = [payload for mode, payload in found if mode == "debug"]
    assert [(payload["type"], payload["step"]) for payload in wrapped] == [
        ("checkpoint", -1),
        ("checkpoint", 0),
        ("task", 1),
        ("task_result", 1),
        ("checkpoint", 1),
        ("task", 2),
        ("task_result", 2),
        ("checkpoint", 2),
    ]
    assert [payload["payload"] for payload in wrapped] == [payload for mode, payload in found if mode != "debug"]
    assert all(datetime.fromisoformat(payload["timestamp"]).utcoffset() is not None for payload in wrapped)


def test_an_attempt_that_is_not_the_first_says_so(chunks: Chunks) -> None:
    flaky, again = Flaky("flaky", error=ConnectionError("lost")), RetryPolicy(initial_interval=0, jitter=False)
    graph = fan().add_node("flaky", flaky, retry_policy=again).add_edge(START, "flaky")
    config = {"metadata": {"team": "blue"}, "tags": ["night"]}
    starts = [chunk for chunk in chunks(graph.compile(), {}, config, stream_mode="tasks") if "input" in chunk]
    given = {"team": "blue", "tags": ["night"]}
    assert [start["metadata"] for start in starts] == [given, {**given, "stepwell_attempt": 2}]
    assert len({start["id"] for start in starts}) == 1
