"""The rules of durable runs as a model: whatever is killed, failed, answered, edited, forked or redeployed, and when.

No database and no engine: a list of points in bytes and the pure functions. Its own checks (in `model/interpreter.py`)
hold at every attempt: no success again, no question again, no record in another lineage, no value that reads back
otherwise.
"""

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from stepwell.testing.graphs import CORPUS, graph_scripts
from tests.pure.model.interpreter import Model
from tests.pure.model.scripts import AT_THE_HEAD, Begin, Reply, Script, Step, scripts
from tests.pure.model.seen import Seen


def modelled(script: Script, failing: bool, order: Callable[[list[int]], list[int]] = list) -> list[Seen]:
    model = Model(script.graph, failing=failing, order=order)
    return [model.play(step) for step in script.steps]


def straight(script: Script) -> Script:
    """Return the script without crashes."""
    return Script(script.graph, tuple(Step(step.op, (), step.broken) for step in script.steps))


def conversation(name: str, nth: int) -> Script:
    dies = (("", nth), ("", nth))
    replies = tuple(Step(Reply(i, f"answer {i}"), dies) for i in range(6))
    return Script(CORPUS[name], (Step(Begin("in"), dies), *replies, Step(Begin("again"), dies), *replies[:2]))


@pytest.mark.parametrize("name", CORPUS)
def test_a_crash_at_any_stop_changes_nothing(name: str) -> None:
    """INV-4, INV-5 and INV-8: dead at the nth stop of each life, through a whole conversation."""
    expected = modelled(straight(conversation(name, 0)), failing=False)
    for nth in (1, 2, 3, 4, 5, 7, 10, 14, 19):
        assert modelled(conversation(name, nth), failing=True) == expected


@given(scripts(graph_scripts(), breaks=False))
def test_resumed_is_uninterrupted(script: Script) -> None:
    """INV-4 to INV-9: crashes and scheduled failures leave no trace in anything a user sees."""
    assert modelled(script, failing=True) == modelled(straight(script), failing=False)


@given(scripts(graph_scripts(failures=False)))
def test_resumed_is_uninterrupted_around_failures_that_stay(script: Script) -> None:
    """INV-4: also where failed threads are edited, answered, forked and given new inputs."""
    assert modelled(script, failing=False) == modelled(straight(script), failing=False)


@given(scripts(graph_scripts(failures=False), crashes=0), st.randoms(use_true_random=False))
def test_any_completion_order_gives_the_same_state(script: Script, chance: random.Random) -> None:
    """INV-5: tasks finish in whatever order, superstep by superstep."""

    def shuffled(indexes: list[int]) -> list[int]:
        return chance.sample(indexes, len(indexes))

    assert modelled(script, failing=False, order=shuffled) == modelled(script, failing=False)


@given(scripts(graph_scripts(failures=False), AT_THE_HEAD, crashes=0, breaks=False))
def test_an_old_inputs_outcomes_never_answer_a_new_one(script: Script) -> None:
    """INV-6: a second input of the same text runs every node that it plans, however much of the first was recorded."""
    model = Model(script.graph)
    for step in script.steps:
        model.play(step)
    before = {record.task_id for point in model.thread.points for record in point.records}
    model.play(Step(Begin("again")))
    fresh = [
        task.id for point in model.thread.points if point.source == "input" for task in model.thread.base(point).tasks
    ]
    assert fresh[-1] not in before
    newest = model.thread.base(model.thread.head)
    assert before.isdisjoint(task.id for task in newest.tasks)


@given(scripts(graph_scripts(), crashes=0))
def test_a_lineage_is_what_its_ancestors_made_it(script: Script) -> None:
    """INV-9: seqs rise along every lineage, and a fork's parent is older than all of it."""
    model = Model(script.graph, failing=False)
    for step in script.steps:
        model.play(step)
    for lineage in range(model.thread.lineages):
        points = [point for point in model.thread.points if point.lineage == lineage]
        assert [point.seq for point in points] == sorted(point.seq for point in points)
        for older, newer in itertools.pairwise(points):
            assert newer.parent is older
        assert points[0].parent is None or points[0].parent.seq < points[0].seq
