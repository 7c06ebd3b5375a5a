"""Calls that end without an answer: timeouts, lost connections, cancellations, frozen processes. Paid once anyway.

An exception from the call says nothing of the money. Only what cannot have reached the server is known to have failed.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import START, EffectInDoubtError, InMemorySaver, NodeTimeoutError, RetryPolicy, StateGraph, TimeoutPolicy
from stepwell.testing.payments import Account, Fault, PaymentRefusedError, Payments, PaymentServer
from tests.e2e.forked import Processes
from tests.effects.acting import statuses
from tests.effects.killing import HELD_CHARGED, Shop
from tests.effects.payment_child import CONFIG, Job, Log, resolve
from tests.effects.test_effects_killed import POLICIES, faults_of_end
from tests.effects.tills import EffectTill

APIS = ("sync", "async")
ONCE = RetryPolicy(max_attempts=1)


class Counter:
    """A shop in this process: a thread in memory, a till, and a graph with one node, which pays there."""

    def __init__(
        self, account: Account, folder: Path, policy: str, api: str = "sync", timeout: Any = None, **options: Any
    ) -> None:
        self.account, self.api = account, api
        self.till = EffectTill(Payments(account.url), str(folder), policy, **options)
        self.saver = InMemorySaver()
        self.graph = self._graph(timeout)

    def _graph(self, timeout: Any) -> Any:
        def pay(state: Log) -> Any:
            return {"log": [self.till.pay("order")["reference"]]}

        async def apay(state: Log) -> Any:
            return {"log": [(await self.till.apay("order"))["reference"]]}

        node = pay if self.api == "sync" else apay
        graph = StateGraph(Log).add_node("pay", node, retry_policy=ONCE, timeout=timeout).add_edge(START, "pay")
        return graph.compile(checkpointer=self.saver, name="counter")

    def begin(self) -> Any:
        return self.graph.invoke({"log": []}, CONFIG)

    def go_on(self) -> Any:
        return self.graph.invoke(None, CONFIG)

    def statuses(self) -> list[str]:
        return statuses(self.saver)


@pytest.mark.parametrize("what", ["close", "reset", "hold"])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_lost_answer_leaves_it_in_doubt_and_it_is_paid_once(
    policy: str,
    api: str,
    what: Any,
    honouring: PaymentServer,
    ignoring: PaymentServer,
    processes: Processes,
    tmp_path: Path,
) -> None:
    """INV-7, where the default rules of a node would try again: a read timeout, a connection that breaks."""
    account = (honouring if policy == "retry" else ignoring).account(tmp_path.name)
    account.script(Fault(what))
    timeout_seconds = 0.2 if what == "hold" else 10.0
    shop = Shop(tmp_path, account, Job("single", policy, api=api, timeout_seconds=timeout_seconds), processes)
    shop.run()
    account.release()
    assert faults_of_end(shop) == []
    assert len(shop.doubts()) == (0 if policy == "retry" else 1)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("api", APIS)
def test_a_process_frozen_past_its_lease_pays_no_second_time(
    policy: str,
    api: str,
    honouring: PaymentServer,
    ignoring: PaymentServer,
    processes: Processes,
    heirs: Processes,
    tmp_path: Path,
) -> None:
    """INV-2, INV-7: its successor finds an intent of a past epoch; thawed, it can write no receipt."""
    account = (honouring if policy == "retry" else ignoring).account(tmp_path.name)
    shop = Shop(tmp_path, account, Job("single", policy, api=api), processes)
    shop.run_frozen(heirs)
    assert faults_of_end(shop) == []
    assert len(shop.doubts()) == (0 if policy == "retry" else 1)


def test_in_doubt_is_never_repeated_blindly(keyless_account: Account, processes: Processes, tmp_path: Path) -> None:
    """Under "raise", whoever goes on is told each time, and the server hears nothing until somebody has decided."""
    shop = Shop(tmp_path, keyless_account, Job("single", "raise"), processes)
    assert shop.run_killed(f"{HELD_CHARGED}:1")
    for _ in range(3):
        with shop.opened() as (graph, _), pytest.raises(EffectInDoubtError) as doubt:
            graph.invoke(None, CONFIG)
        assert [(row.key, row.status) for row in shop.effects()] == [(doubt.value.fields()["key"], "intent")]
    assert len(keyless_account.report().requests) == 1
    shop.run()
    assert faults_of_end(shop) == []


@pytest.mark.parametrize("api", APIS)
def test_a_refused_payment_has_failed_and_may_be_tried_again(api: str, account: Account, tmp_path: Path) -> None:
    """`fails_on` says which errors mean that nothing was done: nobody is asked."""
    account.script(Fault("refuse"))
    counter = Counter(account, tmp_path, "ask", api, fails_on=PaymentRefusedError)
    with pytest.raises(PaymentRefusedError):
        counter.begin()
    assert counter.statuses() == ["failed"]
    counter.go_on()
    assert (counter.statuses(), counter.till.doubts()) == (["done"], [])
    assert account.report().charged == {"order": 1}


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[PaymentServer]:
    """A server of this test's own, to be killed."""
    with PaymentServer(tmp_path) as server:
        yield server


@pytest.mark.parametrize("api", APIS)
def test_a_connection_that_was_refused_has_carried_nothing(api: str, mortal: PaymentServer, tmp_path: Path) -> None:
    """By default too: the server cannot have heard of it."""
    counter = Counter(mortal.account("a"), tmp_path, "ask", api)
    mortal.kill()
    with pytest.raises(ConnectionRefusedError):
        counter.begin()
    assert counter.statuses() == ["failed"]
    mortal.start()
    counter.go_on()
    assert (counter.statuses(), counter.till.doubts()) == (["done"], [])
    assert counter.account.report().charged == {"order": 1}


def test_a_server_killed_after_it_charged_leaves_it_in_doubt(mortal: PaymentServer, tmp_path: Path) -> None:
    """As long as the server cannot be asked, it stays so."""
    counter = Counter(mortal.account("a"), tmp_path, "ask")
    counter.account.script(Fault("hold"))
    with pytest.raises(EffectInDoubtError):
        while_held(counter, counter.begin, mortal.kill)
    with pytest.raises(EffectInDoubtError):
        counter.go_on()
    assert counter.statuses() == ["doubt"]
    mortal.start()
    counter.go_on()
    assert (counter.statuses(), len(counter.till.doubts())) == (["done"], 3)
    assert counter.account.report().charged == {"order": 1}


def while_held(counter: Counter, run: Callable[[], Any], act: Callable[[], Any]) -> Any:
    """Run on a thread; act once the server holds the request; return what the run returns."""

    async def both() -> Any:
        running = asyncio.ensure_future(asyncio.to_thread(run))
        await asyncio.to_thread(counter.account.wait_held)
        await asyncio.to_thread(act)
        return await running

    return asyncio.run(both())


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("policy", POLICIES)
async def test_a_cancelled_call_is_in_doubt_and_paid_once(
    policy: str, api: str, honouring: PaymentServer, ignoring: PaymentServer, tmp_path: Path
) -> None:
    """INV-7: the cancellation ends the run, not the payment."""
    account = (honouring if policy == "retry" else ignoring).account(tmp_path.name)
    counter = Counter(account, tmp_path, policy, api)
    account.script(Fault("hold"))
    running = asyncio.ensure_future(counter.graph.ainvoke({"log": []}, CONFIG))
    await asyncio.to_thread(account.wait_held)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert counter.statuses() in (["intent"], ["doubt"])
    await asyncio.to_thread(settle, counter)
    account.release()
    assert counter.statuses() == ["done"]
    assert (await asyncio.to_thread(account.report)).charged == {"order": 1}


def settle(counter: Counter) -> None:
    """Go on; where an operator must decide, be one."""
    try:
        counter.go_on()
    except EffectInDoubtError as doubt:
        resolve(counter.graph, doubt.fields()["key"], counter.till)
        counter.go_on()


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_node_that_ran_out_of_time_in_its_call_pays_once(
    policy: str, api: str, honouring: PaymentServer, ignoring: PaymentServer, tmp_path: Path
) -> None:
    """INV-7: an async call is cancelled, a sync one abandoned; neither tells whether it was paid."""
    account = (honouring if policy == "retry" else ignoring).account(tmp_path.name)
    counter = Counter(account, tmp_path, policy, api, timeout=TimeoutPolicy(run_timeout=0.2))
    account.script(Fault("hold"))
    with pytest.raises(NodeTimeoutError):
        counter.begin()
    settle(counter)
    account.release()
    assert counter.statuses() == ["done"]
    assert account.report().charged == {"order": 1}
