"""The engine against itself: crashed, failed and resumed at any point, a thread ends as the one nothing happened to."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell import points
from stepwell.testing.graphs import CORPUS, graph_scripts
from tests.pure.model.machine import Machine, Seen
from tests.pure.model.scripts import AT_THE_HEAD, Begin, Reply, Script, Step, scripts

pytestmark = pytest.mark.filterwarnings("ignore::stepwell.JoinNotReleasedWarning")


def straight(script: Script, durability: str = "sync") -> list[Seen]:
    """Return what is seen after each step where no process dies and nothing fails by schedule."""
    machine = Machine(script.graph, failing=False, durability=durability)
    try:
        return [machine.play(Step(step.op, (), step.broken)) for step in script.steps]
    finally:
        machine.close()


def played(script: Script, path: Path | None, durability: str, asynchronous: bool = False) -> list[Seen]:
    """Return what is seen after each step as the script goes wrong. Every row must verify at the end."""
    failing = not any(step.broken for step in script.steps)
    machine = Machine(script.graph, path, failing=failing, durability=durability, asynchronous=asynchronous)
    try:
        seen = [machine.play(step) for step in script.steps]
        assert list(machine.saver.store.verify()) == []
        return seen
    finally:
        points.hook = None
        machine.close()


def conversation(name: str, *crashes: tuple[str, int]) -> Script:
    """Return a whole conversation with a graph of the corpus: an input, answers to everything, a second input."""
    replies = tuple(Step(Reply(i, f"answer {i}"), crashes) for i in range(6))
    return Script(CORPUS[name], (Step(Begin("in"), crashes), *replies, Step(Begin("again"), crashes), *replies[:2]))


@pytest.mark.parametrize("point", points.ALL)
@pytest.mark.parametrize("name", CORPUS)
def test_a_crash_at_any_point_changes_nothing(name: str, point: str) -> None:
    """INV-1, INV-4, INV-5 and INV-8 over every shape, at every point, the first and the third time it is reached."""
    script = conversation(name, (point, 1), (point, 3))
    assert played(script, None, "sync") == straight(script)


@given(scripts(graph_scripts(), breaks=False))
def test_resumed_is_uninterrupted(script: Script) -> None:
    """INV-4 to INV-9: inputs, answers, edits, forks, replays and new versions over random graphs, in memory."""
    assert played(script, None, "sync") == straight(script)


@given(scripts(graph_scripts(failures=False)))
def test_resumed_is_uninterrupted_around_failures_that_stay(script: Script) -> None:
    """INV-4: threads that are left failed are edited, answered, forked and given new inputs."""
    assert played(script, None, "sync") == straight(script)


@given(scripts(graph_scripts(), breaks=False, most=4), st.booleans())
def test_resumed_is_uninterrupted_on_a_file(script: Script, asynchronous: bool) -> None:
    """INV-4 to INV-9: each life of the process opens the file anew; under asyncio too."""
    with TemporaryDirectory() as folder:
        assert played(script, Path(folder) / "threads.db", "sync", asynchronous) == straight(script)


@given(scripts(graph_scripts(), AT_THE_HEAD, breaks=False), st.sampled_from(["async", "exit"]))
def test_resumed_is_uninterrupted_in_every_mode(script: Script, durability: str) -> None:
    """INV-5: the state a thread ends in is the same in all modes; `exit` leaves out what is in between."""
    with TemporaryDirectory() as folder:
        seen, expected = played(script, Path(folder) / "threads.db", durability), straight(script)
    if durability == "exit":
        for one in (*seen, *expected):
            del one.history[1:]
            one.history[:] = [entry[3:6] for entry in one.history]
    assert seen == expected
