"""Payment servers that tests share, and an account for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.testing.payments import Account, PaymentServer
from tests.e2e.forked import Processes


@pytest.fixture(scope="session")
def honouring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaymentServer]:
    """A server that charges once an idempotency key."""
    with PaymentServer(tmp_path_factory.mktemp("honouring")) as server:
        yield server


@pytest.fixture(scope="session")
def ignoring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaymentServer]:
    """A server that takes no notice of idempotency keys."""
    with PaymentServer(tmp_path_factory.mktemp("ignoring"), honours_keys=False) as server:
        yield server


@pytest.fixture
def account(honouring: PaymentServer, tmp_path: Path) -> Iterator[Account]:
    """An account of this test's own on the server that honours keys."""
    yield from of_its_own(honouring, tmp_path)


@pytest.fixture
def keyless_account(ignoring: PaymentServer, tmp_path: Path) -> Iterator[Account]:
    """An account of this test's own on the server that ignores keys."""
    yield from of_its_own(ignoring, tmp_path)


def of_its_own(server: PaymentServer, tmp_path: Path) -> Iterator[Account]:
    account = server.account(tmp_path.name)
    yield account
    account.release()


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    """Where processes that pay come from, one at a time."""
    yield from processes_that_pay()


@pytest.fixture(scope="session")
def heirs() -> Iterator[Processes]:
    """Where others come from meanwhile."""
    yield from processes_that_pay()


def processes_that_pay() -> Iterator[Processes]:
    running = Processes("tests.effects.payment_child")
    yield running
    running.close()
