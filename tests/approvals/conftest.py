"""Approvals are tried through each way to call a graph; time is set by hand."""

import pytest

from stepwell.testing import FakeClock
from tests.effects.acting import Outside
from tests.runtime.conftest import call as call, chunks as chunks
from tests.runtime.deaths import Deaths, Saver


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, deaths: Deaths) -> FakeClock:
    """The clock of runs and stores: it stands still until it is moved."""
    monkeypatch.setattr("stepwell.engine.wiring._CLOCK", deaths.clock)
    return deaths.clock


@pytest.fixture
def saver(clock: FakeClock) -> Saver:
    """An in-memory saver by that clock."""
    return Saver(clock)


@pytest.fixture
def outside() -> Outside:
    """The other side."""
    return Outside()
