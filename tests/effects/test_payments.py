"""The payment server counts rightly: it could not show that others charge twice if it did not."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell.testing.payments import (
    Account,
    Charge,
    Fault,
    KeyReusedError,
    PaymentRefusedError,
    Payments,
    PaymentServer,
)

Charging = Callable[..., Charge]


@pytest.fixture(params=["sync", "async"])
def charge_at(request: pytest.FixtureRequest) -> Callable[..., Charge]:
    """Charge at an account through the client, from sync code and from a loop of its own."""

    def charge(account: Account, *arguments: Any, timeout_seconds: float = 10.0, **named: Any) -> Charge:
        client = Payments(account.url, timeout_seconds=timeout_seconds)
        if request.param == "sync":
            return client.charge(*arguments, **named)
        return asyncio.run(client.acharge(*arguments, **named))

    return charge


def test_a_key_is_charged_once(account: Account, charge_at: Charging) -> None:
    first = charge_at(account, 5, reference="order", idempotency_key="k")
    assert first == {"id": first["id"], "reference": "order", "amount": 5, "key": "k"}
    assert charge_at(account, 5, reference="order", idempotency_key="k") == first
    report = account.report()
    assert [tuple(request) for request in report.requests] == [("k", "order", "charged"), ("k", "order", "repeated")]
    assert (report.received, report.charged, report.duplicates) == ({"k": 2}, {"order": 1}, {})


def test_a_server_that_ignores_keys_charges_each_request(keyless_account: Account, charge_at: Charging) -> None:
    ids = {charge_at(keyless_account, 5, reference="order", idempotency_key="k")["id"] for _ in range(2)}
    report = keyless_account.report()
    assert len(ids) == 2
    assert (report.received, report.duplicates) == ({"k": 2}, {"order": 2})


def test_without_a_key_each_request_is_charged(account: Account, charge_at: Charging) -> None:
    for _ in range(2):
        charge_at(account, 5, reference="order")
    assert account.report().duplicates == {"order": 2}


def test_a_key_of_another_charge_is_refused(account: Account, charge_at: Charging) -> None:
    charge_at(account, 5, reference="order", idempotency_key="k")
    with pytest.raises(KeyReusedError, match="k was used for another charge"):
        charge_at(account, 6, reference="order", idempotency_key="k")
    assert [request.fate for request in account.report().requests] == ["charged", "reused"]


def test_accounts_know_nothing_of_each_other(honouring: PaymentServer, account: Account, charge_at: Charging) -> None:
    charge_at(account, 5, reference="order", idempotency_key="k")
    other = honouring.account("other")
    charge_at(other, 7, reference="order", idempotency_key="k")
    assert [charge["amount"] for charge in account.report().charges] == [5]
    assert [charge["amount"] for charge in other.report().charges] == [7]


def test_a_refusal_charges_nothing(account: Account, charge_at: Charging) -> None:
    account.script(Fault("refuse"))
    with pytest.raises(PaymentRefusedError, match="the payment of order is refused"):
        charge_at(account, 5, reference="order", idempotency_key="k")
    assert account.report().charged == {}
    charge_at(account, 5, reference="order", idempotency_key="k")
    assert [request.fate for request in account.report().requests] == ["refused", "charged"]


@pytest.mark.parametrize("what", ["close", "reset"])
@pytest.mark.parametrize("charged", [True, False])
def test_a_lost_answer_does_not_tell_whether_it_was_charged(
    what: Any, charged: bool, account: Account, charge_at: Charging
) -> None:
    account.script(Fault(what, charged=charged))
    with pytest.raises(ConnectionResetError):
        charge_at(account, 5, reference="order", idempotency_key="k")
    assert account.report().charged == ({"order": 1} if charged else {})
    charge_at(account, 5, reference="order", idempotency_key="k")
    assert account.report().charged == {"order": 1}


@pytest.mark.parametrize("charged", [True, False])
def test_a_client_that_stops_waiting_may_be_charged_all_the_same(
    charged: bool, account: Account, charge_at: Charging
) -> None:
    account.script(Fault("hold", charged=charged))
    with pytest.raises(TimeoutError):
        charge_at(account, 5, reference="order", timeout_seconds=0.1)
    account.wait_held()
    assert account.report().charged == ({"order": 1} if charged else {})
    account.release()
    assert account.report().charged == {"order": 1}


def test_a_cancelled_call_may_be_charged_all_the_same(account: Account) -> None:
    async def cancel() -> None:
        call = asyncio.ensure_future(Payments(account.url).acharge(5, reference="order"))
        await asyncio.to_thread(account.wait_held)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    account.script(Fault("hold"))
    asyncio.run(cancel())
    assert account.report().charged == {"order": 1}


def test_what_is_held_is_answered_when_it_is_released(account: Account, charge_at: Charging) -> None:
    answers: list[Charge] = []
    account.script(Fault("hold", charged=False))
    caller = threading.Thread(target=lambda: answers.append(charge_at(account, 5, reference="order")))
    caller.start()
    account.wait_held()
    assert [request.fate for request in account.report().requests] == ["held"]
    account.release()
    caller.join()
    assert [answer["reference"] for answer in answers] == ["order"]


def test_a_slow_answer_comes_by_itself(account: Account, charge_at: Charging) -> None:
    account.script(Fault("hold", seconds=0.01))
    assert charge_at(account, 5, reference="order")["amount"] == 5


def test_a_fault_for_one_reference_strikes_no_other(account: Account, charge_at: Charging) -> None:
    account.script(Fault("refuse", reference="b"))
    charge_at(account, 5, reference="a")
    with pytest.raises(PaymentRefusedError):
        charge_at(account, 5, reference="b")


def test_charges_are_found_by_reference_and_by_key(account: Account) -> None:
    client = Payments(account.url)
    a, b = client.charge(5, reference="a", idempotency_key="k"), client.charge(6, reference="b")
    assert client.find(reference="a") == client.find(idempotency_key="k") == [a]
    assert asyncio.run(client.afind(reference="b")) == [b]
    assert client.find(reference="nothing") == []
    assert client.find() == [a, b]


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[PaymentServer]:
    """A server of this test's own, to be killed."""
    with PaymentServer(tmp_path) as server:
        yield server


def test_a_killed_server_refuses_connections_and_remembers_its_charges(
    mortal: PaymentServer, charge_at: Charging
) -> None:
    """Killed between a charge and its answer: the client cannot know, the books do."""
    account = mortal.account("a")
    account.script(Fault("hold"))
    lost: list[ConnectionResetError] = []

    def caller() -> None:
        try:
            charge_at(account, 5, reference="order", idempotency_key="k")
        except ConnectionResetError as error:
            lost.append(error)

    calling = threading.Thread(target=caller)
    calling.start()
    account.wait_held()
    mortal.kill()
    calling.join()
    assert len(lost) == 1
    with pytest.raises(ConnectionRefusedError):
        charge_at(account, 5, reference="order", idempotency_key="k")
    mortal.start()
    assert account.report().charged == {"order": 1}
    charge_at(account, 5, reference="order", idempotency_key="k")
    assert [request.fate for request in account.report().requests] == ["charged", "repeated"]
