"""INV-8: a process may die at every point around a decision: it is made once, and what it allows happens once."""

from pathlib import Path
from typing import Any

import pytest

from stepwell import AlreadyDecidedError, Approve, Command, Decision, Reject, SqliteSaver, points
from stepwell.testing import SimulatedCrash, record_points
from tests.approvals.desks import arefunding, asked, decisions, desk, head, refunding
from tests.approvals.refund_child import KILLED, Job, build, done
from tests.e2e.forked import Processes
from tests.effects.acting import DURABILITIES, Outside, statuses
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, thread

ANN = Command(resume=Approve("ann"))
POINTS = (
    (points.ADMISSION, 1),
    (points.BEGUN, 1),
    (points.WRITTEN, 1),
    (points.DURABLE, 1),
    (points.ADMITTED, 1),
    (points.TASK_STARTED, 1),
    (points.BEGUN, 2),
    (points.WRITTEN, 2),
    (points.DURABLE, 2),
    (points.INTENT_DURABLE, 1),
    (points.BODY_RETURNED, 1),
    (points.BEGUN, 3),
    (points.WRITTEN, 3),
    (points.DURABLE, 3),
    (points.RECEIPT_DURABLE, 1),
    (points.TASK_FINISHED, 1),
    (points.MERGED, 1),
    (points.ENDED, 1),
)
"""What a run passes that follows a decision: it is on disk with the first transaction, the intent with the second, the
receipt with the third."""
UNDECIDED = POINTS[:3]


def test_these_are_the_points_that_a_run_passes(saver: Saver, outside: Outside) -> None:
    graph = desk(saver, refunding(outside))
    graph.invoke({}, thread())
    with record_points() as reached:
        graph.invoke(ANN, thread())
    passed = [(point, reached[: i + 1].count(point)) for i, point in enumerate(reached)]
    assert [each for each in passed if each in POINTS] == list(POINTS)


@pytest.mark.parametrize("refunding", [refunding, arefunding])
@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize(("point", "nth"), POINTS)
def test_approval_lost_on_crash(
    deaths: Deaths, saver: Saver, outside: Outside, durability: str, point: str, nth: int, refunding: Any
) -> None:
    """The guard of that name: what was decided is not asked again, and what was not decided has not happened."""
    graph = desk(saver, refunding(outside))
    graph.invoke({}, thread(), durability=durability)
    question = asked(graph)["a"]
    deaths.dies_at(point, nth)
    with pytest.raises(SimulatedCrash):
        graph.invoke(ANN, thread(), durability=durability)
    deaths.revive()
    if (point, nth) in UNDECIDED:
        assert (asked(graph), decisions(saver, graph), outside.asked) == ({"a": question}, [], [])
        graph.invoke(Command(resume=Approve("bob")), thread(), durability=durability)
    else:
        assert [each.by for each in decisions(saver, graph)] == ["ann"]
        graph.invoke(None, thread(), durability=durability)
    assert graph.get_state(thread()).values == {"log": ["a:100 #1"]}
    assert len(outside.done) == len(decisions(saver, graph)) == 1
    assert statuses(saver) == ["done"]
    assert list(saver.store.verify()) == []


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize(("point", "nth"), [each for each in POINTS if each not in UNDECIDED])
def test_approval_applied_twice(
    deaths: Deaths, saver: Saver, outside: Outside, durability: str, point: str, nth: int
) -> None:
    """The guard of that name: whoever decides after a crash is told who did, and nothing happens a second time."""
    graph = desk(saver, refunding(outside))
    graph.invoke({}, thread(), durability=durability)
    question = asked(graph)["a"]
    deaths.dies_at(point, nth)
    with pytest.raises(SimulatedCrash):
        graph.invoke(ANN, thread(), durability=durability)
    deaths.revive()
    before = head(saver)
    for second in (Approve("bob", args={"cents": 7}), Reject("bob"), Approve("ann")):
        for resume in (second, {question: second}):
            with pytest.raises(AlreadyDecidedError, match="approved by ann"):
                graph.invoke(Command(resume=resume), thread(), durability=durability)
    assert head(saver) == before
    graph.invoke(None, thread(), durability=durability)
    assert graph.get_state(thread()).values == {"log": ["a:100 #1"]}
    assert (len(outside.done), len(decisions(saver, graph))) == (1, 1)


@pytest.mark.parametrize("refunding", [refunding, arefunding])
def test_interrupt_under_exit(call: Call, saver: Saver, outside: Outside, refunding: Any) -> None:
    """The guard of that name: in `exit` mode too a question is on disk before it is reported, and so is the answer."""
    graph = desk(saver, refunding(outside), "a", "b")
    (question,) = call(graph, {}, thread(), durability="exit")["__interrupt__"]
    assert graph.get_state(thread()).interrupts == (question,)
    (second,) = call(graph, ANN, thread(), durability="exit")["__interrupt__"]
    assert graph.get_state(thread()).interrupts == (second,)
    assert (outside.times, [each.by for each in decisions(saver, graph)]) == ({"a:100": 1}, ["ann"])
    assert call(graph, ANN, thread(), durability="exit") == {"log": ["a:100 #1", "b:100 #2"]}


@pytest.mark.parametrize("point", [points.BEGUN, points.WRITTEN, points.DURABLE, points.ENDED])
@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_rejection_survives_as_an_approval_does(
    deaths: Deaths, saver: Saver, outside: Outside, durability: str, point: str
) -> None:
    graph = desk(saver, refunding(outside))
    graph.invoke({}, thread(), durability=durability)
    deaths.dies_at(point, 1)
    with pytest.raises(SimulatedCrash):
        graph.invoke(Command(resume=Reject("eve", "no")), thread(), durability=durability)
    deaths.revive()
    decided = bool(decisions(saver, graph))
    assert decided == (point in (points.DURABLE, points.ENDED))
    graph.invoke(None if decided else Command(resume=Reject("eve", "no")), thread(), durability=durability)
    assert graph.get_state(thread()).values == {"log": ["no: no"]}
    assert outside.asked == []


# -- processes that are killed ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def processes() -> Any:
    running = Processes("tests.approvals.refund_child")
    yield running
    running.close()


@pytest.mark.parametrize(
    ("durability", "crash"),
    [
        ("sync", "transaction.written:1"),
        ("exit", "run.admitted:1"),
        ("sync", "effect.intent_durable:1"),
        ("async", "calling"),
        ("exit", "called"),
    ],
)
def test_a_killed_process_decides_once_and_refunds_once(
    tmp_path: Path, processes: Processes, durability: str, crash: str
) -> None:
    job = Job(str(tmp_path), durability)
    assert processes.run(job._replace(what="ask")) == 0
    assert processes.run(job._replace(what="ann", crash=crash)) == KILLED
    with SqliteSaver(tmp_path / "threads.db") as saver:
        graph = build(job, saver)
        made = decisions(saver, graph)
        assert [each.by for each in made] == ([] if crash == "transaction.written:1" else ["ann"])
    assert processes.run(job._replace(what="bob")) == (3 if made else 0)
    assert processes.run(job._replace(what="go on")) == 0
    with SqliteSaver(tmp_path / "threads.db") as saver:
        graph = build(job, saver)
        (decision,) = decisions(saver, graph)
        assert decision == Decision(status="approved", by="ann" if made else "bob", at=decision.at)
        assert graph.get_state(thread()).values["log"] == ["refunded a"]
        assert list(saver.store.verify()) == []
    assert len(set(done(job))) == 1
