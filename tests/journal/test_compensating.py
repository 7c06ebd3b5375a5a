"""`compensate`: what a thread has done to the outside world is undone, last receipt first, each once."""

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import pytest

from stepwell import (
    START,
    CannotCompensateError,
    Command,
    EffectCompensatedError,
    EffectDeclarationError,
    EffectInDoubtError,
    EffectNotPerformed,
    InMemorySaver,
    NestedThreadError,
    NoCheckpointerError,
    RetryPolicy,
    SqliteSaver,
    StateGraph,
    ThreadBusyError,
    UnknownCheckpointError,
    effect,
    interrupt,
    points,
)
from stepwell.runtime.effects.decorator import registered
from stepwell.testing import SimulatedCrash, crash_at
from tests.effects.acting import Outside, one, rows, statuses
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Log

CONFIG = {"configurable": {"thread_id": "t"}}


class Shop:
    """Books, charges and mails; what can be undone is undone under a key of its own."""

    def __init__(self, saver: SqliteSaver | None, **options: Any) -> None:
        self.outside, self.undone = Outside(), Outside()
        self.saver = saver

        def cancel(receipt: str, idempotency_key: str) -> str:
            return self.undone.act(idempotency_key, f"cancel {receipt}")

        def refund(receipt: str, amount: int, idempotency_key: str) -> str:
            return self.undone.act(idempotency_key, f"refund {amount} of {receipt}")

        async def arefund(receipt: str, amount: int, idempotency_key: str) -> str:
            await asyncio.sleep(0)
            return refund(receipt, amount, idempotency_key)

        def book(what: str, idempotency_key: str) -> str:
            return self.outside.act(idempotency_key, what)

        def charge(amount: int, idempotency_key: str) -> str:
            return self.outside.act(idempotency_key, amount)

        def mail(idempotency_key: str) -> str:
            return self.outside.act(idempotency_key, "mail")

        undo_charge = arefund if options.pop("is_async", False) else refund
        self.book = effect(compensate=cancel)(book)
        self.charge = effect(compensate=effect(**options)(undo_charge) if options else undo_charge)(charge)
        self.mail = effect(mail)
        builder = StateGraph(Log)
        builder.add_node("first", self.first)
        builder.add_node("second", self.second)
        builder.add_edge(START, "first")
        builder.add_edge("first", "second")
        self.graph = builder.compile(checkpointer=saver)

    def first(self, state: Log) -> Any:
        return {"log": [self.book("room"), self.charge(5)]}

    def second(self, state: Log) -> Any:
        return {"log": [self.mail(), self.charge(7)]}

    def run(self) -> None:
        self.graph.invoke({"log": []}, CONFIG)

    @property
    def undone_in_order(self) -> list[Any]:
        return [content for _, content in self.undone.asked]


ALL = ["refund 7 of 7 #4", "refund 5 of 5 #2", "cancel room #1"]


@pytest.fixture
def shop(memory_saver: InMemorySaver) -> Shop:
    return Shop(memory_saver)


def compensate(graph: Any, config: Any = CONFIG) -> Any:
    return graph.compensate(config)


def acompensate(graph: Any, config: Any = CONFIG) -> Any:
    return asyncio.run(graph.acompensate(config))


both = pytest.mark.parametrize("undo", [compensate, acompensate])


@both
@pytest.mark.parametrize("is_async", [False, True], ids=["sync function", "async function"])
def test_what_was_done_is_undone_last_receipt_first_and_what_cannot_be_is_listed(
    saver: SqliteSaver, undo: Callable[..., Any], is_async: bool
) -> None:
    shop = Shop(saver, is_async=is_async)
    shop.run()
    made = undo(shop.graph)
    assert [(each.name, each.node, each.status) for each in made] == [
        ("charge", "second", "compensated"),
        ("mail", "second", "no compensation"),
        ("charge", "first", "compensated"),
        ("book", "first", "compensated"),
    ]
    assert shop.undone_in_order == ALL
    assert [(each.receipt, each.result) for each in made[:2]] == [("7 #4", "refund 7 of 7 #4 #1"), (None, None)]
    assert made[0].compensation_key == shop.undone.keys[0]
    assert len({each.key for each in made}) == 4
    assert [row.status for row in rows(saver) if row.name == "mail"] == ["done"]
    assert sorted(row.status for row in rows(saver) if row.name != "mail") == ["compensated"] * 3 + ["done"] * 3
    assert list(saver.store.verify()) == []


@both
def test_once_undone_nothing_is_undone_again(shop: Shop, undo: Callable[..., Any]) -> None:
    shop.run()
    undo(shop.graph)
    before = shop.graph.checkpointer.store.counts.transactions
    assert [each.status for each in undo(shop.graph)] == ["no compensation"]
    assert shop.undone_in_order == ALL
    assert shop.graph.checkpointer.store.counts.transactions == before


def test_the_threads_state_stays_and_it_goes_on(shop: Shop) -> None:
    shop.run()
    before = shop.graph.get_state(CONFIG)
    shop.graph.compensate(CONFIG)
    assert shop.graph.get_state(CONFIG) == before
    (made, _) = shop.saver.runs("t")  # type: ignore[union-attr]
    assert (made.kind, made.status, made.attempts) == ("compensate", "finished", 1)
    assert [thread.status for thread in shop.saver.threads()] == ["finished"]  # type: ignore[union-attr]


def test_compensations_stand_in_the_journal_as_the_effects_they_are(shop: Shop) -> None:
    shop.run()
    shop.graph.compensate(CONFIG)
    last = next(shop.graph.get_journal(CONFIG))
    assert (last.kind, last.name, last.status, last.node) == ("effect", "cancel", "done", "first")
    assert last.planned_action == "cancel, to undo book(what='room')"
    assert last.inputs == {"receipt": "room #1"}


def test_an_undo_costs_two_transactions_and_two_for_the_whole(shop: Shop) -> None:
    shop.run()
    counts = shop.graph.checkpointer.store.counts
    before = counts.transactions
    shop.graph.compensate(CONFIG)
    assert counts.transactions == before + 2 + 3 * 2


def test_a_compensated_receipt_is_never_reused_in_any_lineage(shop: Shop) -> None:
    shop.run()
    at_first = next(s.config for s in shop.graph.get_state_history(CONFIG) if s.next == ("first",))
    shop.graph.compensate(CONFIG)
    forked = shop.graph.fork(at_first)
    with pytest.raises(EffectCompensatedError):
        shop.graph.invoke(None, forked)
    assert len(shop.outside.asked) == 4


def test_a_node_that_runs_again_after_it_gets_no_receipt_either(memory_saver: InMemorySaver) -> None:
    shop = Shop(memory_saver)
    graph = one(lambda state: {"log": [shop.charge(5), interrupt("go on?")]}, memory_saver)
    graph.invoke({"log": []}, CONFIG)
    assert [each.status for each in graph.compensate(CONFIG)] == ["compensated"]
    assert graph.get_state(CONFIG).next == ("n",)
    with pytest.raises(EffectCompensatedError):
        graph.retry(CONFIG, "n")
    assert len(shop.outside.asked) == 1


def test_only_what_led_to_a_lineage_is_undone_and_what_it_took_over(memory_saver: InMemorySaver) -> None:
    shop = Shop(memory_saver)
    shop.run()
    at_second = next(s.config for s in shop.graph.get_state_history(CONFIG) if s.next == ("second",))
    forked = shop.graph.fork(at_second)
    made = shop.graph.compensate(forked)  # it has not gone by what `second` did
    assert [(each.name, each.node) for each in made] == [("charge", "first"), ("book", "first")]
    shop.graph.invoke(None, forked)
    made = shop.graph.compensate(forked)  # it has now, and its receipts answered
    assert [(each.name, each.node, each.status) for each in made] == [
        ("charge", "second", "compensated"),
        ("mail", "second", "no compensation"),
    ]
    assert shop.undone_in_order == ["refund 5 of 5 #2", "cancel room #1", "refund 7 of 7 #4"]


def test_an_older_lineage_can_be_named_by_a_checkpoint_of_it(memory_saver: InMemorySaver) -> None:
    shop = Shop(memory_saver)
    shop.run()
    finished = shop.graph.get_state(CONFIG).config
    at_first = next(s.config for s in shop.graph.get_state_history(CONFIG) if s.next == ("first",))
    shop.graph.fork(at_first)
    assert shop.graph.compensate(CONFIG) == ()
    assert len(shop.graph.compensate(finished)) == 4


def test_what_is_in_doubt_itself_is_listed_and_left(memory_saver: InMemorySaver) -> None:
    shop = Shop(memory_saver)
    shop.outside.losses = []

    def lost(amount: int) -> None:
        raise ValueError("lost")

    doubtful = effect(on_doubt="raise", compensate=lambda receipt: None, name="doubtful")(lost)

    def node(state: Log) -> Any:
        shop.book("room")
        doubtful(5)

    graph = one(node, memory_saver)
    with pytest.raises(EffectInDoubtError):
        graph.invoke({"log": []}, CONFIG)
    made = graph.compensate(CONFIG)
    assert [(each.name, each.status) for each in made] == [("doubtful", "in doubt"), ("book", "compensated")]
    graph.resolve_effect(CONFIG, made[0].key, receipt="it went through")
    assert [(each.name, each.status) for each in graph.compensate(CONFIG)] == [("doubtful", "compensated")]
    assert graph.get_state(CONFIG).next == ("n",)


# -- compensations that fail ------------------------------------------------------------------------------------------


@both
def test_a_compensation_that_fails_is_raised_and_the_next_call_goes_on_with_it(
    shop: Shop, undo: Callable[..., Any]
) -> None:
    shop.run()
    shop.undone.refusals = [EffectNotPerformed("closed")]
    with pytest.raises(EffectNotPerformed, match="closed"):
        undo(shop.graph)
    assert shop.saver.runs("t")[0].status == "failed"  # type: ignore[union-attr]
    assert undo(shop.graph)[0].status == "compensated"
    assert shop.undone_in_order == ALL


def test_a_retry_policy_of_the_compensation_is_kept_to(memory_saver: InMemorySaver) -> None:
    shop = Shop(memory_saver, retry_policy=RetryPolicy(initial_interval=0.0, max_attempts=2))
    shop.run()
    shop.undone.refusals = [ConnectionRefusedError("closed")]
    assert [each.status for each in shop.graph.compensate(CONFIG)] == [
        *("compensated", "no compensation"),
        *("compensated", "compensated"),
    ]
    assert shop.undone_in_order == ALL


@both
def test_a_compensation_in_doubt_stops_and_goes_on_once_resolved(
    memory_saver: InMemorySaver, undo: Callable[..., Any]
) -> None:
    shop = Shop(memory_saver, on_doubt="raise")
    shop.run()
    shop.undone.losses = [ValueError("lost")]
    for _ in range(2):
        with pytest.raises(EffectInDoubtError) as caught:
            undo(shop.graph)
    assert shop.undone_in_order == ALL[:1]
    key = caught.value.fields()["key"]
    shop.graph.resolve_effect(CONFIG, key, receipt="refunded, says the bank", by="ann")
    assert [row.status for row in rows(memory_saver) if row.key == shop.outside.keys[3]] == ["compensated"]
    made = undo(shop.graph)
    assert [(each.name, each.status) for each in made] == [
        ("mail", "no compensation"),
        ("charge", "compensated"),
        ("book", "compensated"),
    ]
    assert shop.undone_in_order == ALL


@pytest.mark.parametrize("decision", [{"failed": "no"}, {"retry": True}], ids=lambda d: next(iter(d)))
def test_a_compensation_that_may_run_again_does(memory_saver: InMemorySaver, decision: dict[str, Any]) -> None:
    shop = Shop(memory_saver, on_doubt="raise")
    shop.run()
    shop.undone.losses = [ValueError("lost")]
    with pytest.raises(EffectInDoubtError) as caught:
        shop.graph.compensate(CONFIG)
    shop.graph.resolve_effect(CONFIG, caught.value.fields()["key"], **decision)
    shop.graph.compensate(CONFIG)
    assert shop.undone_in_order == [ALL[0], *ALL]
    assert len(set(shop.undone.keys)) == 3


def test_without_a_key_a_compensation_in_doubt_is_never_repeated(memory_saver: InMemorySaver) -> None:
    asked: list[str] = []

    def refund(receipt: str) -> None:
        asked.append(receipt)
        raise ValueError("lost")

    charge = effect(on_doubt="raise", compensate=refund, name="charge")(lambda amount: "paid")
    graph = one(lambda state: {"log": [charge(5)]}, memory_saver)
    graph.invoke({"log": []}, CONFIG)
    for _ in range(3):
        with pytest.raises(EffectInDoubtError):
            graph.compensate(CONFIG)
    assert asked == ["paid"]


# -- crashes ----------------------------------------------------------------------------------------------------------

POINTS = [
    *(points.ADMITTED, points.INTENT_DURABLE, points.BODY_RETURNED, points.RECEIPT_DURABLE, points.ENDED),
    *(points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE),
]


@both
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("point", POINTS)
def test_INV_7_whatever_point_it_dies_at_each_is_undone_once(
    deaths: Deaths, undo: Callable[..., Any], point: str, nth: int
) -> None:
    with Saver(deaths.clock) as saver:
        shop = Shop(saver)
        shop.run()
        deaths.dies_at(point, nth)
        try:
            undo(shop.graph)
        except SimulatedCrash:
            deaths.revive()
        points.hook = None
        undo(shop.graph)
        assert dict.fromkeys(shop.undone_in_order) == dict.fromkeys(ALL)
        assert len(shop.undone.done) == 3
        assert sorted(statuses(saver)) == ["compensated"] * 3 + ["done"] * 4
        assert list(saver.store.verify()) == []
        assert shop.graph.get_state(CONFIG).next == ()


@pytest.mark.parametrize("point", [points.INTENT_DURABLE, points.BODY_RETURNED])
def test_what_takes_no_key_and_dies_is_in_doubt_and_not_repeated(deaths: Deaths, point: str) -> None:
    asked: list[str] = []
    with Saver(deaths.clock) as saver:
        charge = effect(on_doubt="raise", compensate=asked.append, name="charge")(lambda amount: "paid")
        graph = one(lambda state: {"log": [charge(5)]}, saver)
        graph.invoke({"log": []}, CONFIG)
        deaths.dies_at(point)
        with pytest.raises(SimulatedCrash):
            graph.compensate(CONFIG)
        deaths.revive()
        before = list(asked)
        with pytest.raises(EffectInDoubtError, match="its process died"):
            graph.compensate(CONFIG)
        assert asked == before


def test_a_call_that_was_interrupted_frees_the_thread(shop: Shop) -> None:
    shop.run()
    with pytest.raises(SimulatedCrash), crash_at(points.BODY_RETURNED):
        shop.graph.compensate(CONFIG)
    assert shop.saver.runs("t")[0].status == "cancelled"  # type: ignore[union-attr]
    shop.graph.compensate(CONFIG)
    assert len(shop.undone.done) == 3


def test_a_dead_call_is_not_gone_on_with_as_a_run_of_the_graph(deaths: Deaths) -> None:
    with Saver(deaths.clock) as saver:
        builder = StateGraph(Log)
        builder.add_node("first", Shop(saver).first)
        builder.add_node("second", lambda state: {"log": [interrupt("?")]})
        builder.add_edge(START, "first")
        builder.add_edge("first", "second")
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"log": []}, CONFIG)
        deaths.dies_at(points.RECEIPT_DURABLE)
        with pytest.raises(SimulatedCrash):
            graph.compensate(CONFIG)
        deaths.revive()
        assert "__interrupt__" in graph.invoke(None, CONFIG)
        assert graph.invoke(Command(resume="yes"), CONFIG) == {"log": ["room #1", "5 #2", "yes"]}
        assert [(run.kind, run.status) for run in saver.runs("t")] == [
            ("answer", "finished"),
            ("compensate", "failed"),
            ("input", "paused"),
        ]


def test_a_writer_that_lost_the_thread_changes_nothing_any_more(deaths: Deaths) -> None:
    """INV-2"""
    with Saver(deaths.clock) as saver:
        shop = Shop(saver)
        shop.run()

        def late(point: str) -> None:
            if point == points.BODY_RETURNED:
                points.hook = None
                deaths.clock.advance(60)
                contextvars.Context().run(shop.graph.compensate, CONFIG)

        points.hook = late
        with pytest.raises(Exception, match="lost its lease"):
            shop.graph.compensate(CONFIG)
        assert len(shop.undone.done) == 3
        assert sorted(statuses(saver)) == ["compensated"] * 3 + ["done"] * 4


# -- what is refused --------------------------------------------------------------------------------------------------


def test_an_effect_that_is_not_declared_here_stops_it_before_anything_is_undone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run()
    monkeypatch.delitem(registered, "book")
    with pytest.raises(CannotCompensateError, match="Import the module that declares it"):
        shop.graph.compensate(CONFIG)
    assert shop.undone_in_order == []


def test_it_needs_a_checkpointer_and_a_checkpoint_that_is_there(shop: Shop) -> None:
    assert shop.graph.compensate(CONFIG) == ()
    with pytest.raises(NoCheckpointerError, match="compensate"):
        Shop(None).graph.compensate(CONFIG)
    with pytest.raises(UnknownCheckpointError):
        shop.graph.compensate({"configurable": {"thread_id": "t", "checkpoint_id": "nope"}})


def test_nothing_is_undone_while_somebody_runs_the_thread(memory_saver: InMemorySaver) -> None:
    raised: list[BaseException] = []
    shop = Shop(memory_saver)

    def node(state: Log) -> Any:
        shop.charge(5)
        for call in (lambda: graph.compensate(CONFIG), lambda: from_outside()):
            try:
                call()
            except (NestedThreadError, ThreadBusyError) as error:
                raised.append(error)

    def from_outside() -> None:
        contextvars.Context().run(graph.compensate, CONFIG)

    graph = one(node, memory_saver)
    graph.invoke({"log": []}, CONFIG)
    assert [type(error) for error in raised] == [NestedThreadError, ThreadBusyError]
    assert shop.undone_in_order == []


def takes_nothing() -> None: ...
def takes_by_name(*, receipt: Any) -> None: ...
def takes_a_stranger(receipt: Any, other: Any) -> None: ...
def takes_the_client(receipt: Any, client: Any) -> None: ...
def takes_the_config(receipt: Any, config: Any) -> None: ...


@pytest.mark.parametrize(
    ("compensation", "reason"),
    [
        ("refund", "must be a function of the receipt"),
        (takes_nothing, "its first parameter is for the receipt"),
        (takes_by_name, "'receipt' cannot take it"),
        (takes_a_stranger, "'other', which is no argument of the effect"),
        (takes_the_client, "'client', which is excluded"),
        (takes_the_config, "config"),
        (effect(on_doubt="raise", key="k", name="keyed")(lambda receipt: None), "a key of its own"),
        (effect(on_doubt="raise", approval=True, name="asked")(lambda receipt: None), "asks for approval"),
    ],
)
def test_what_could_not_be_called_is_refused_when_it_is_declared(compensation: Any, reason: str) -> None:
    with pytest.raises(EffectDeclarationError, match=reason):

        @effect(on_doubt="raise", exclude=["client"], compensate=compensation)
        def charge(amount: int, client: Any) -> None: ...


def test_what_a_compensation_takes_beside_it_has_its_default(memory_saver: InMemorySaver) -> None:
    seen: list[Any] = []

    def refund(receipt: str, amount: int, reason: str = "compensated", **more: Any) -> None:
        seen.append((receipt, amount, reason, more))

    charge = effect(on_doubt="raise", compensate=refund, name="charge")(lambda amount, note="-": "paid")
    graph = one(lambda state: {"log": [charge(5)]}, memory_saver)
    graph.invoke({"log": []}, CONFIG)
    graph.compensate(CONFIG)
    assert seen == [("paid", 5, "compensated", {})]


# -- keys that threads share ------------------------------------------------------------------------------------------


def test_a_global_effect_is_undone_once_whichever_thread_asks(memory_saver: InMemorySaver) -> None:
    undone = Outside()

    def refund(receipt: str, idempotency_key: str) -> str:
        return undone.act(idempotency_key, receipt)

    charge = effect(on_doubt="raise", key="order", scope="global", compensate=refund, name="charge")(lambda n: "paid")
    graph = one(lambda state: {"log": [charge(5)]}, memory_saver)
    other = {"configurable": {"thread_id": "u"}}
    graph.invoke({"log": []}, CONFIG)
    graph.invoke({"log": []}, other)
    made = [*graph.compensate(CONFIG), *graph.compensate(other)]
    assert [each.status for each in made] == ["compensated"]
    assert len(undone.asked) == 1
    with pytest.raises(EffectCompensatedError):
        graph.invoke({"log": []}, {"configurable": {"thread_id": "v"}})


def test_a_copy_of_a_thread_undoes_nothing_that_the_thread_has_undone(memory_saver: InMemorySaver) -> None:
    shop = Shop(memory_saver)
    shop.run()
    memory_saver.copy_thread("t", "u")
    copy = {"configurable": {"thread_id": "u"}}
    shop.undone.refusals = []
    assert len(shop.graph.compensate(CONFIG)) == 4
    assert [each.status for each in shop.graph.compensate(copy)] == ["no compensation"]
    assert shop.undone_in_order == ALL


def test_a_copy_undoes_what_the_thread_has_not_and_for_both(memory_saver: InMemorySaver) -> None:
    shop = Shop(memory_saver)
    shop.run()
    memory_saver.copy_thread("t", "u")
    assert len(shop.graph.compensate({"configurable": {"thread_id": "u"}})) == 4
    assert [each.status for each in shop.graph.compensate(CONFIG)] == ["no compensation"]
    assert shop.undone_in_order == ALL
    assert list(memory_saver.store.verify()) == []


def test_what_came_along_from_another_thread_is_that_ones_to_undo(memory_saver: InMemorySaver) -> None:
    shop = Shop(memory_saver)
    shop.run()
    at_second = next(s.config for s in shop.graph.get_state_history(CONFIG) if s.next == ("second",))
    forked = shop.graph.fork(at_second, thread_id="u")
    made = shop.graph.compensate({"configurable": {"thread_id": forked["configurable"]["thread_id"]}})
    assert {(each.name, each.status) for each in made} == {("charge", "elsewhere"), ("book", "elsewhere")}
    assert shop.undone_in_order == []


@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies"])
def test_a_copy_that_is_made_meanwhile_leaves_no_receipt_to_be_used(
    deaths: Deaths, dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy has the compensation in doubt, whose function is no effect: that keeps nobody from going on."""
    monkeypatch.delitem(registered, "refund", raising=False)  # other tests declare one
    with Saver(deaths.clock) as saver:
        shop = Shop(saver)
        graph = one(lambda state: {"log": [shop.charge(5), interrupt("?")]}, saver)
        graph.invoke({"log": []}, CONFIG)
        act = shop.undone.act

        def copied(key: str, content: Any) -> str:
            saver.copy_thread("t", "u")  # the effect has a row more under its key from here on
            shop.undone.act = act  # type: ignore[method-assign]
            return act(key, content)

        shop.undone.act = copied  # type: ignore[method-assign]
        if dies:
            deaths.dies_at(points.RECEIPT_DURABLE)
            with pytest.raises(SimulatedCrash):
                graph.compensate(CONFIG)
            deaths.revive()
        graph.compensate(CONFIG)
        assert [row.status for row in rows(saver, "t") if row.name == "charge"] == ["compensated"]
        assert graph.compensate({"configurable": {"thread_id": "u"}}) == ()
        assert len(shop.undone.done) == 1
        with pytest.raises(EffectCompensatedError):
            graph.retry({"configurable": {"thread_id": "u"}}, "n")
