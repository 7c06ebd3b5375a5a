"""The engine, the model and a run that nothing happens to: three ways through one script, one result.

Engine and model share the pure functions only. What is compared is everything a user sees: values, `next`, questions,
errors, and the whole history with its lineages, results and joins.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from stepwell import points
from stepwell.stores.sqlite import SqliteStore
from stepwell.superstep import blobs
from stepwell.superstep.body import deltas
from stepwell.testing.graphs import CORPUS, GraphScript, NodeScript, graph_scripts
from tests.pure.model.interpreter import Model
from tests.pure.model.machine import Machine, Opened
from tests.pure.model.scripts import (
    AT_THE_HEAD,
    Begin,
    Continue,
    Edit,
    Fork,
    Op,
    Redeploy,
    Redirect,
    Replay,
    Reply,
    ReplyByOldId,
    ReplyEarlier,
    Script,
    Step,
    scripts,
)
from tests.pure.model.seen import Seen

pytestmark = pytest.mark.filterwarnings("ignore::stepwell.JoinNotReleasedWarning")


def straight(script: Script) -> list[Seen]:
    """Return what the engine shows after each step where no process dies and nothing fails by schedule."""
    machine = Machine(script.graph, failing=False)
    try:
        return [machine.play(Step(step.op, (), step.broken)) for step in script.steps]
    finally:
        machine.close()


def modelled(script: Script) -> list[Seen]:
    """Return what the model shows after each step, without crashes and scheduled failures."""
    model = Model(script.graph, failing=False)
    return [model.play(Step(step.op, (), step.broken)) for step in script.steps]


def played(
    script: Script,
    path: Path | None = None,
    durability: str = "sync",
    *,
    asynchronous: bool = False,
    opened: Opened = SqliteStore,
) -> list[Seen]:
    """Return what the engine shows after each step as the script goes wrong. Every row must verify at the end."""
    failing = not any(step.broken for step in script.steps)
    machine = Machine(
        script.graph, path, failing=failing, durability=durability, asynchronous=asynchronous, opened=opened
    )
    try:
        seen = [machine.play(step) for step in script.steps]
        assert list(machine.saver.store.verify()) == []
        machine.check_logs()
        return seen
    finally:
        points.hook = None
        machine.close()


@pytest.fixture(autouse=True)
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small graphs have deltas, chains that end, and values that stand apart."""
    monkeypatch.setattr(deltas, "LIMITS", deltas.Limits(2, 3, 3))
    monkeypatch.setattr(blobs, "ABOVE", 16)


# -- every shape, every point -----------------------------------------------------------------------------------------

CONVERSATION: tuple[Op, ...] = (
    Begin("in"), Reply(1, "yes"), Reply(2, None), Redeploy(), Reply(3, 0), Begin("again"), Reply(0, "no"), Continue()
)  # fmt: skip


@cache
def uneventful(name: str) -> list[Seen]:
    return modelled(Script(CORPUS[name], tuple(Step(op) for op in CONVERSATION)))


@pytest.mark.parametrize("shift", (0, len(points.ALL) // 2))
@pytest.mark.parametrize("name", CORPUS)
def test_a_crash_at_any_point_changes_nothing(name: str, shift: int) -> None:
    """INV-1, INV-4, INV-5 and INV-8: each step of a conversation dies at two points, one the first and one the second
    time it is reached; over the steps and shifts, at every point."""
    turned = points.ALL[shift:] + points.ALL[:shift]
    steps = [Step(op, ((turned[i], 1), (turned[-1 - i], 2)), same_call=i % 2 > 0) for i, op in enumerate(CONVERSATION)]
    assert played(Script(CORPUS[name], tuple(steps))) == uneventful(name)


# -- random graphs, random lives --------------------------------------------------------------------------------------


@given(scripts(graph_scripts(), crashes=0))
def test_the_engine_does_what_the_model_says(script: Script) -> None:
    """Every operation, also on threads that were left failed."""
    assert straight(script) == modelled(script)


@given(scripts(graph_scripts(), breaks=False))
def test_resumed_is_uninterrupted(script: Script) -> None:
    """INV-4 to INV-9: inputs, answers, edits, forks, replays and new versions, in memory."""
    assert played(script) == modelled(script)


@given(scripts(graph_scripts(failures=False)))
def test_resumed_is_uninterrupted_around_failures_that_stay(script: Script) -> None:
    """INV-4: threads that are left failed are edited, answered, forked and given new inputs."""
    assert played(script) == modelled(script)


@given(scripts(graph_scripts(), breaks=False, most=4), st.booleans())
def test_resumed_is_uninterrupted_on_a_file(script: Script, asynchronous: bool) -> None:
    """INV-4 to INV-9: each life of the process opens the file anew; under asyncio too."""
    with TemporaryDirectory() as folder:
        assert played(script, Path(folder) / "threads.db", asynchronous=asynchronous) == modelled(script)


@given(scripts(graph_scripts(), AT_THE_HEAD, breaks=False), st.booleans())
def test_async_durability_loses_nothing_that_matters(script: Script, asynchronous: bool) -> None:
    """INV-5: at most one superstep is repeated, and the history is the same."""
    with TemporaryDirectory() as folder:
        seen = played(script, Path(folder) / "threads.db", "async", asynchronous=asynchronous)
    assert seen == modelled(script)


@given(scripts(graph_scripts(), AT_THE_HEAD, breaks=False), st.booleans())
def test_exit_durability_ends_in_the_same_state(script: Script, asynchronous: bool) -> None:
    """INV-5: only what lies between is not there."""
    with TemporaryDirectory() as folder:
        seen = played(script, Path(folder) / "threads.db", "exit", asynchronous=asynchronous)
    assert list(map(_ends, seen)) == list(map(_ends, modelled(script)))


def _ends(seen: Seen) -> Seen:
    """Return what every durability mode shows: the newest checkpoint without its place among the others."""
    return Seen(seen.error, seen.values, seen.next, seen.questions, [seen.history[0][3:6]])


# -- trees ------------------------------------------------------------------------------------------------------------

TREES = (
    *("begin", "reply", "reply earlier", "continue", "edit", "rewrite", "rewrite head"),
    *("retry", "fork", "replay", "redirect"),
)


@given(scripts(graph_scripts(), TREES, breaks=False, most=6))
def test_every_branch_is_what_its_own_history_makes_it(script: Script) -> None:
    """INV-5, INV-9: random trees, killed and reopened. Each branch reads the same live and from disk, in a copy of the
    thread and in a fork into another; and folding what its supersteps recorded, one by one, leads to its head."""
    with TemporaryDirectory() as folder:
        machine = Machine(script.graph, Path(folder) / "threads.db")
        try:
            for step in script.steps:
                machine.play(step)
            live = machine.branches()
            machine.reopen()
            assert machine.branches() == live
            assert machine.copied() == live
            assert machine.forked() == [(values, next_, joins) for _, values, next_, joins, _ in live]
            assert machine.folded() == [values for _, values, *_ in live]
            assert list(machine.saver.store.verify()) == []
        finally:
            points.hook = None
            machine.close()


# -- faults that were found so ----------------------------------------------------------------------------------------

SHAPES = {
    **CORPUS,
    "side by side, one asks": GraphScript(
        tuple(NodeScript(name, questions=int(name == "b")) for name in "abc"), entry=("a", "b", "c")
    ),
}
FAULTS: dict[str, tuple[str, list[Step]]] = {
    "the checkpoint of an input is replayed": ("chain", [Step(Begin("x")), Step(Replay(-1))]),
    "a fork of the checkpoint of an input is run": ("chain", [Step(Begin("x")), Step(Fork(-1)), Step(Continue())]),
    "a replay stores outcomes of its own": ("fan-out", [Step(Begin("x")), Step(Replay(1)), Step(Edit(1, 0, "y"))]),
    "a crashed replay is continued, not begun again": (
        "chain", [Step(Begin("x")), Step(Replay(2), (("task.finished", 1), ("superstep.committed", 1)))],
    ),
    "a crashed answer at an older checkpoint is continued": (
        "question", [Step(Begin("x")), Step(Reply(0, "yes")), Step(ReplyEarlier(2, "no"), (("task.started", 1),) * 2)],
    ),
    "an answer at an older checkpoint leaves its siblings as they were": (
        "questions side by side", [Step(Begin("x")), Step(Reply(3, 1)), Step(Reply(1, 2)), Step(ReplyEarlier(1, "no"))],
    ),
    "a command without an answer has a run id": ("loop", [Step(Begin("x")), Step(Redirect("y", 0))]),
    "a command leaves deferred nodes asleep": (
        "deferred", [Step(Begin("x"), broken=frozenset("b")), Step(Redirect("y", 1), broken=frozenset("b"))],
    ),
    "an old id is mapped by position after an edit at an older checkpoint": (
        "question",
        [Step(op) for op in (Begin("x"), Edit(0, 0, "y"), Edit(1, 0, "z"), Continue(), ReplyByOldId(0, "yes"))],
    ),
    "an answer behind an edit takes nothing from the edit": (
        "side by side, one asks", [Step(Begin("x")), Step(Edit(0, 0, "x")), Step(ReplyEarlier(1, "yes"))],
    ),
    "an unfinished superstep shows its values in merge order": (
        "sends, a pull and a question", [Step(Begin("x")), Step(Reply(0, "yes"))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_stays_mended(name: str) -> None:
    shape, steps = FAULTS[name]
    script = Script(SHAPES[shape], tuple(steps))
    assert played(script) == modelled(script)
