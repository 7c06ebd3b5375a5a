"""A workflow's thread: its history, edits, forks and replays, and what a killed process leaves of it."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import Command, GraphMismatchError, InMemorySaver, InvalidUpdateError, SqliteSaver, entrypoint, interrupt
from stepwell.testing import SimulatedCrash, record_points
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import thread

THREAD = thread("t")


def pair(value: Any, *, previous: Any) -> Any:
    return entrypoint.final(value=[value, previous], save=value)


def test_its_history_has_an_input_and_an_outcome_for_each_run(saver: SqliteSaver) -> None:
    graph = entrypoint(checkpointer=saver)(pair)
    graph.invoke(1, THREAD)
    graph.invoke(2, THREAD)
    shown = [
        (state.values, state.next, state.metadata["source"], state.metadata["step"], [t.result for t in state.tasks])
        for state in graph.get_state_history(THREAD)
        if state.metadata is not None
    ]
    assert shown == [
        ([2, 1], (), "loop", 2, []),
        ([1, None], ("pair",), "input", 1, [[2, 1]]),
        ([1, None], (), "loop", 0, []),
        (None, ("pair",), "input", -1, [[1, None]]),
    ]


def test_in_exit_mode_a_finished_run_leaves_one_checkpoint(saver: SqliteSaver) -> None:
    graph = entrypoint(checkpointer=saver)(pair)
    graph.invoke(1, THREAD, durability="exit")
    graph.invoke(2, THREAD, durability="exit")
    assert [state.values for state in graph.get_state_history(THREAD)] == [[2, 1], [1, None]]


@pytest.mark.parametrize("as_node", [None, "pair"])
def test_an_edit_stands_for_a_return_value(saver: SqliteSaver, as_node: str | None) -> None:
    graph = entrypoint(checkpointer=saver)(pair)
    graph.update_state(THREAD, "seed", as_node)
    assert graph.get_state(THREAD).values == "seed"
    assert graph.invoke(1, THREAD) == [1, "seed"]
    graph.update_state(THREAD, entrypoint.final(value="shown", save="kept"), as_node)
    assert graph.get_state(THREAD).values == "shown"
    assert graph.invoke(2, THREAD) == [2, "kept"]


def test_an_edit_over_a_question_stands_for_the_function(saver: SqliteSaver) -> None:
    graph = entrypoint(checkpointer=saver)(lambda value: interrupt(value))
    graph.invoke("?", THREAD)
    graph.update_state(THREAD, "instead")
    state = graph.get_state(THREAD)
    assert (state.values, state.next, state.interrupts) == ("instead", (), ())


def test_an_edit_may_be_an_input(saver: SqliteSaver) -> None:
    graph = entrypoint(checkpointer=saver)(pair)
    graph.update_state(THREAD, 5, as_node="__input__")
    assert graph.get_state(THREAD).next == ("pair",)
    assert graph.invoke(None, THREAD) == [5, None]


def test_no_edit_acts_as_start(memory_saver: InMemorySaver) -> None:
    graph = entrypoint(checkpointer=memory_saver)(pair)
    with pytest.raises(InvalidUpdateError, match="Node __start__ does not exist"):
        graph.update_state(THREAD, 5, as_node="__start__")


def test_clearing_what_is_planned_keeps_what_was_saved(saver: SqliteSaver) -> None:
    graph = entrypoint(checkpointer=saver)(pair)
    graph.invoke(1, THREAD)
    graph.update_state(THREAD, 2, as_node="__input__")
    graph.update_state(THREAD, None, as_node="__end__")
    assert graph.get_state(THREAD).next == ()
    assert graph.invoke(3, THREAD) == [3, 1]


def test_a_replay_runs_the_input_of_then_with_what_was_saved_then(saver: SqliteSaver) -> None:
    graph = entrypoint(checkpointer=saver)(pair)
    for number in (1, 2, 3):
        graph.invoke(number, THREAD)
    inputs = [state for state in graph.get_state_history(THREAD) if state.next]
    assert graph.invoke(None, inputs[1].config) == [2, 1]
    assert graph.invoke(4, THREAD) == [4, 2]
    assert len(graph.get_lineages(THREAD)[0].children) == 1


def test_an_old_checkpoint_takes_a_new_input_in_a_lineage_of_its_own(saver: SqliteSaver) -> None:
    graph = entrypoint(checkpointer=saver)(pair)
    graph.invoke(1, THREAD)
    first = graph.get_state(THREAD).config
    graph.invoke(2, THREAD)
    forked = graph.fork(first)
    assert graph.invoke(9, forked) == [9, 1]


def test_a_question_at_an_old_checkpoint_may_be_answered_otherwise(saver: SqliteSaver) -> None:
    graph = entrypoint(checkpointer=saver)(lambda value: [value, interrupt("?")])
    graph.invoke("x", THREAD)
    asked = graph.get_state(THREAD).config
    assert graph.invoke(Command(resume=1), THREAD) == ["x", 1]
    assert graph.invoke(Command(resume=2), asked) == ["x", 2]


def test_another_workflow_does_not_go_on_with_the_thread(memory_saver: InMemorySaver) -> None:
    entrypoint(checkpointer=memory_saver, name="one")(pair).invoke(1, THREAD)
    with pytest.raises(GraphMismatchError):
        entrypoint(checkpointer=memory_saver, name="two")(pair).invoke(1, THREAD)


def test_a_renamed_function_takes_up_the_runs_of_the_old_one(memory_saver: InMemorySaver) -> None:
    def asking(value: Any) -> Any:
        return [value, interrupt("?")]

    def renamed(value: Any) -> Any:
        return [value, interrupt("?")]

    entrypoint(checkpointer=memory_saver, name="w")(asking).invoke("x", THREAD)
    aliases = {"asking": "renamed"}
    graph = entrypoint(checkpointer=memory_saver, name="w", aliases=aliases, on_change="ignore")(renamed)
    assert graph.invoke(Command(resume=1), THREAD) == ["x", 1]


def test_values_of_an_older_version_are_converted(memory_saver: InMemorySaver) -> None:
    def total(value: int, *, previous: Any) -> Any:
        return (previous or {"total": 0})["total"] + value

    def migrate(values: dict[str, Any], from_version: str) -> dict[str, Any]:
        return {**values, "__previous__": {"total": values["__previous__"]}}

    entrypoint(checkpointer=memory_saver, name="w", version="1")(lambda value: value).invoke(3, THREAD)
    made = entrypoint(checkpointer=memory_saver, name="w", version="2", migrate=migrate, on_change="ignore")(total)
    assert made.invoke(4, THREAD) == 7


# -- deaths -----------------------------------------------------------------------------------------------------------


def points_of_a_run(durability: Any) -> list[tuple[str, int]]:
    """Return every point that the second run of a thread reaches, with its ordinal."""
    with Saver(Deaths().clock) as saver:
        graph = entrypoint(checkpointer=saver)(pair)
        graph.invoke(1, THREAD, durability=durability)
        with record_points() as reached:
            graph.invoke(2, THREAD, durability=durability)
    return [(point, reached[: i + 1].count(point)) for i, point in enumerate(reached)]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_killed_anywhere_ends_with_the_same_outcome_and_the_same_previous(
    deaths: Deaths, durability: Any
) -> None:
    for point, nth in points_of_a_run(durability):
        with Saver(deaths.clock) as saver:
            graph = entrypoint(checkpointer=saver)(pair)
            graph.invoke(1, THREAD, durability=durability)
            deaths.dies_at(point, nth)
            with pytest.raises(SimulatedCrash):
                graph.invoke(2, THREAD, durability=durability)
            deaths.revive()
            begun = graph.get_state(THREAD)
            assert (begun.values, begun.next) in [([1, None], ()), ([1, None], ("pair",)), ([2, 1], ())], point
            if begun.next:
                assert graph.invoke(None, THREAD, durability=durability) == [2, 1], point
            elif begun.values == [1, None]:  # the input had not arrived
                assert graph.invoke(2, THREAD, durability=durability) == [2, 1], point
            assert graph.invoke(3, THREAD, durability=durability) == [3, 2], point
            assert list(saver.store.verify()) == []
