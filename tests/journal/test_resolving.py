"""`resolve_effect`: an operator says what is known of an effect in doubt, and the thread goes on by that."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from stepwell import (
    EffectBusyError,
    EffectInDoubtError,
    EffectNotInDoubtError,
    InMemorySaver,
    InvalidResolutionError,
    NoCheckpointerError,
    SqliteSaver,
    ThreadBusyError,
    UnknownEffectError,
    UnknownThreadError,
    UnserializableValueError,
    effect,
    points,
)
from stepwell.testing import SimulatedCrash, crash_at
from tests.effects.acting import Outside, one, rows, statuses
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Log

CONFIG = {"configurable": {"thread_id": "t"}}
OTHER = {"configurable": {"thread_id": "u"}}


class World:
    """An effect that is in doubt: the first request was lost on its way back."""

    def __init__(self, saver: SqliteSaver, **options: Any) -> None:
        self.outside = Outside()
        self.outside.losses = [ValueError("lost")]
        self.saver = saver

        def charge(amount: int) -> str:
            return self.outside.act(f"request {len(self.outside.asked)}", amount)

        self.charge = effect(**{"on_doubt": "raise"} | options)(charge)
        self.graph = one(self.node, saver)

    def node(self, state: Log) -> Any:
        return {"log": [self.charge(5)]}

    def begin(self, config: Any = CONFIG) -> str:
        """Run into the doubt; return its key."""
        with pytest.raises(EffectInDoubtError) as caught:
            self.graph.invoke({"log": []}, config)
        return str(caught.value.fields()["key"])


@pytest.fixture
def world(memory_saver: InMemorySaver) -> World:
    return World(memory_saver)


def test_a_receipt_is_what_the_next_run_returns(world: World) -> None:
    key = world.begin()
    entry = world.graph.resolve_effect(CONFIG, key, receipt="5 #1", by="ann", reason="the bank says so")
    assert (entry.status, entry.receipt, entry.error_state) == ("done", "5 #1", None)
    assert (entry.decision, entry.decided_by, entry.reason) == ("receipt", "ann", "the bank says so")
    assert (entry.key, entry.name, entry.node, entry.inputs) == (key, "charge", "n", {"amount": 5})
    assert world.graph.invoke(None, CONFIG) == {"log": ["5 #1"]}
    assert world.outside.asked == [("request 0", 5)]
    assert world.graph.get_state(CONFIG).next == ()


def test_what_has_not_happened_is_performed_under_the_same_key(world: World) -> None:
    key = world.begin()
    entry = world.graph.resolve_effect(CONFIG, key, failed="the bank knows nothing of it", by="ann")
    assert (entry.status, entry.error_state) == ("failed", "the bank knows nothing of it")
    assert world.graph.invoke(None, CONFIG) == {"log": ["5 #2"]}
    assert [(entry.status, entry.attempts, entry.decision) for entry in world.graph.get_journal(CONFIG)] == [
        ("done", 2, None),
        ("failed", 1, "failed"),
        ("in doubt", 1, None),
    ]
    assert {entry.key for entry in world.graph.get_journal(CONFIG)} == {key}


def test_one_more_attempt_is_one(world: World) -> None:
    """INV-7: nothing is repeated without being allowed to."""
    key = world.begin()
    entry = world.graph.resolve_effect(CONFIG, key, retry=True, by="ann")
    assert (entry.status, entry.decision, entry.error_state) == ("in doubt", "retry", "ValueError('lost')")
    world.outside.losses = [ValueError("lost again")]
    for _ in range(2):  # the attempt that was allowed, and none after it
        with pytest.raises(EffectInDoubtError, match="lost again"):
            world.graph.invoke(None, CONFIG)
    assert len(world.outside.asked) == 2
    world.graph.resolve_effect(CONFIG, key, retry=True)
    assert world.graph.invoke(None, CONFIG) == {"log": ["5 #3"]}


@pytest.mark.parametrize("point", [points.INTENT_DURABLE, points.BODY_RETURNED, points.RECEIPT_DURABLE])
def test_an_attempt_that_was_allowed_and_died_is_used_up(deaths: Deaths, point: str) -> None:
    with Saver(deaths.clock) as saver:
        world = World(saver)
        key = world.begin()
        world.graph.resolve_effect(CONFIG, key, retry=True)
        deaths.dies_at(point)
        with pytest.raises(SimulatedCrash):
            world.graph.invoke(None, CONFIG)
        deaths.revive()
        asked = len(world.outside.asked)
        if point == points.RECEIPT_DURABLE:
            assert world.graph.invoke(None, CONFIG) == {"log": ["5 #2"]}
        else:
            with pytest.raises(EffectInDoubtError):
                world.graph.invoke(None, CONFIG)
        assert len(world.outside.asked) == asked


def test_a_function_that_looks_doubts_up_is_not_asked_where_an_attempt_is_allowed(memory_saver: InMemorySaver) -> None:
    asked: list[Any] = []

    def look_up(doubt: Any) -> None:
        asked.append(doubt)
        raise LookupError("nobody there")

    world = World(memory_saver, on_doubt=look_up)
    key = world.begin()
    world.graph.resolve_effect(CONFIG, key, retry=True)
    assert world.graph.invoke(None, CONFIG) == {"log": ["5 #2"]}
    assert len(asked) == 1


def test_a_decision_can_be_taken_back_while_nobody_has_gone_on_by_it(world: World) -> None:
    key = world.begin()
    world.graph.resolve_effect(CONFIG, key, retry=True, by="ann")
    world.graph.resolve_effect(CONFIG, key, receipt=None, by="bob", reason="it came through after all")
    assert world.graph.invoke(None, CONFIG) == {"log": [None]}
    decisions = [(entry.decision, entry.decided_by) for entry in world.graph.get_journal(CONFIG) if entry.decision]
    assert decisions == [("receipt", "bob"), ("retry", "ann")]


def test_without_a_name_the_user_of_the_process_has_decided(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody")
    key = world.begin()
    entry = world.graph.resolve_effect(CONFIG, key, receipt="x")
    assert (entry.decided_by, entry.reason) == ("somebody", None)


def test_it_is_resolved_off_the_loop_too(world: World) -> None:
    key = world.begin()
    entry = asyncio.run(world.graph.aresolve_effect(CONFIG, key, receipt=[1, {"a": 2}], by="ann"))
    assert entry.receipt == [1, {"a": 2}]
    assert world.graph.invoke(None, CONFIG) == {"log": [[1, {"a": 2}]]}


def test_a_decision_is_one_transaction(world: World) -> None:
    key = world.begin()
    before = world.saver.store.counts.transactions
    world.graph.resolve_effect(CONFIG, key, receipt="x")
    assert world.saver.store.counts.transactions == before + 1


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"receipt": 1, "retry": True},
        {"failed": "x", "retry": True},
        {"receipt": 1, "failed": True},
        {"retry": "yes"},
        {"failed": ""},
        {"failed": False},
        {"receipt": 1, "by": ""},
        {"receipt": 1, "by": 7},
        {"receipt": 1, "reason": None},
    ],
)
def test_a_decision_that_is_none_or_two_is_refused(world: World, given: dict[str, Any]) -> None:
    key = world.begin()
    found = list(world.graph.get_journal(CONFIG))
    with pytest.raises(InvalidResolutionError, match=key):
        world.graph.resolve_effect(CONFIG, key, **given)
    assert list(world.graph.get_journal(CONFIG)) == found


def test_a_receipt_that_cannot_be_stored_is_refused(world: World) -> None:
    key = world.begin()
    with pytest.raises(UnserializableValueError):
        world.graph.resolve_effect(CONFIG, key, receipt=object())
    assert statuses(world.saver) == ["doubt"]


def test_what_is_not_in_doubt_is_not_resolved_and_said_to_be_what_it_is(world: World) -> None:
    key = world.begin()
    world.graph.resolve_effect(CONFIG, key, receipt="x", by="ann")
    with pytest.raises(EffectNotInDoubtError, match="it is done") as caught:
        world.graph.resolve_effect(CONFIG, key, failed=True, by="bob")
    assert caught.value.fields()["status"] == "done"
    assert world.graph.invoke(None, CONFIG) == {"log": ["x"]}


def test_a_key_and_a_thread_that_are_not_there(world: World) -> None:
    key = world.begin()
    with pytest.raises(UnknownEffectError, match="stepwell effects"):
        world.graph.resolve_effect(CONFIG, "f" * 32, retry=True)
    with pytest.raises(UnknownThreadError):
        world.graph.resolve_effect(OTHER, key, retry=True)
    with pytest.raises(NoCheckpointerError):
        one(world.node, None).resolve_effect(CONFIG, key, retry=True)


def test_nothing_is_resolved_while_somebody_runs_the_thread(memory_saver: InMemorySaver) -> None:
    raised: list[BaseException] = []

    def during(state: Log) -> Any:
        try:
            world.graph.resolve_effect(CONFIG, key, receipt="x")
        except ThreadBusyError as error:
            raised.append(error)
        return {"log": [world.charge(5)]}

    world = World(memory_saver)
    key = world.begin()
    world.node = during  # type: ignore[method-assign]
    graph = one(during, memory_saver)
    with pytest.raises(EffectInDoubtError):
        graph.invoke(None, CONFIG)
    assert len(raised) == 1
    assert statuses(memory_saver) == ["doubt"]


# -- crashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decision", [{"receipt": "x"}, {"failed": "no"}, {"retry": True}], ids=lambda d: next(iter(d)))
@pytest.mark.parametrize("point", [points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE, points.EFFECT_RESOLVED])
def test_INV_1_a_decision_is_there_with_what_it_decides_or_not_at_all(
    world: World, point: str, decision: dict[str, Any]
) -> None:
    key = world.begin()
    with pytest.raises(SimulatedCrash), crash_at(point):
        world.graph.resolve_effect(CONFIG, key, by="ann", **decision)
    landed = point in (points.DURABLE, points.EFFECT_RESOLVED)
    decided = [entry.decision for entry in world.graph.get_journal(CONFIG) if entry.decision is not None]
    (row,) = rows(world.saver)
    assert decided == ([next(iter(decision))] if landed else [])
    expected = {"receipt": "done", "failed": "failed", "retry": "doubt"}[next(iter(decision))]
    assert row.status == (expected if landed else "doubt")
    assert list(world.saver.store.verify()) == []


def test_a_run_whose_process_died_goes_on_after_the_decision_as_itself(deaths: Deaths) -> None:
    with Saver(deaths.clock) as saver:
        world = World(saver)
        world.outside.losses = []
        deaths.dies_at(points.BODY_RETURNED)
        with pytest.raises(SimulatedCrash):
            world.graph.invoke({"log": []}, {**CONFIG, "run_id": "r1"}, durability="exit")
        deaths.revive()
        (row,) = rows(saver)
        world.graph.resolve_effect(CONFIG, row.key, receipt="5 #1", by="ann")
        assert world.graph.invoke(None, CONFIG) == {"log": ["5 #1"]}
        assert [(run.run_id, run.status) for run in saver.runs("t")] == [("r1", "finished")]
    assert len(world.outside.asked) == 1


def test_a_writer_that_was_stopped_meanwhile_changes_nothing_any_more(deaths: Deaths) -> None:
    """INV-2: who decides has the thread; the one that had it has lost it."""
    with Saver(deaths.clock) as saver:
        world = World(saver)
        world.outside.losses = []

        def late(point: str) -> None:
            if point == points.BODY_RETURNED:
                points.hook = None
                deaths.clock.advance(60)
                (row,) = rows(saver)
                world.graph.resolve_effect(CONFIG, row.key, failed="gone", by="ann")

        points.hook = late
        with pytest.raises(Exception, match="lost its lease"):
            world.graph.invoke({"log": []}, CONFIG)
        assert statuses(saver) == ["failed"]


# -- keys that threads share ------------------------------------------------------------------------------------------


def shared(saver: SqliteSaver) -> World:
    return World(saver, key="order-7", scope="global")


def test_a_global_effect_is_resolved_through_any_thread_and_outlives_its_own(memory_saver: InMemorySaver) -> None:
    world = shared(memory_saver)
    key = world.begin()
    one(lambda state: None, memory_saver).invoke({"log": []}, OTHER)
    memory_saver.delete_thread("t")
    assert statuses(memory_saver) == ["doubt"]
    with pytest.raises(UnknownThreadError, match="name another one"):
        world.graph.resolve_effect(CONFIG, key, receipt="5 #1")
    entry = world.graph.resolve_effect(OTHER, key, receipt="5 #1", by="ann", reason="seen")
    assert (entry.status, entry.receipt, entry.name, entry.node) == ("done", "5 #1", "charge", "n")
    assert [(e.decision, e.decided_by) for e in world.graph.get_journal(OTHER)] == [("receipt", "ann")]
    assert world.graph.invoke({"log": []}, CONFIG) == {"log": ["5 #1"]}
    assert len(world.outside.asked) == 1
    assert list(memory_saver.store.verify()) == []


@pytest.mark.parametrize("decision", [{"failed": "no"}, {"retry": True}], ids=lambda d: next(iter(d)))
def test_a_global_effect_may_run_again_in_another_thread(memory_saver: InMemorySaver, decision: Any) -> None:
    world = shared(memory_saver)
    key = world.begin()
    world.graph.resolve_effect(CONFIG, key, **decision)
    assert world.graph.invoke({"log": []}, OTHER) == {"log": ["5 #2"]}
    assert world.graph.invoke(None, CONFIG) == {"log": ["5 #2"]}


def test_what_another_thread_performs_is_not_resolved(memory_saver: InMemorySaver) -> None:
    world = shared(memory_saver)
    world.outside.losses = []
    raised: list[BaseException] = []
    act: Callable[..., str] = world.outside.act

    def during(key: str, content: Any) -> str:
        (row,) = rows(memory_saver)
        with pytest.raises(EffectBusyError) as caught:
            world.graph.resolve_effect(OTHER, row.key, failed=True)
        raised.append(caught.value)
        return act(key, content)

    world.outside.act = during  # type: ignore[method-assign]
    one(lambda state: None, memory_saver).invoke({"log": []}, OTHER)
    assert world.graph.invoke({"log": []}, CONFIG) == {"log": ["5 #1"]}
    assert len(raised) == 1


def test_what_was_settled_while_it_was_decided_stays_settled(memory_saver: InMemorySaver) -> None:
    world = shared(memory_saver)
    key = world.begin()
    one(lambda state: None, memory_saver).invoke({"log": []}, OTHER)

    def meanwhile(point: str) -> None:
        if point == points.ADMISSION:
            points.hook = None
            world.graph.resolve_effect(CONFIG, key, receipt="the first", by="ann")

    points.hook = meanwhile
    try:
        with pytest.raises(EffectNotInDoubtError, match="it is done"):
            world.graph.resolve_effect(OTHER, key, receipt="the second", by="bob")
    finally:
        points.hook = None
    assert [entry.decided_by for entry in world.graph.get_journal(OTHER)] == []
    assert world.graph.invoke(None, CONFIG) == {"log": ["the first"]}
