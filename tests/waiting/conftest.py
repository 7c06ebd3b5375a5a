"""The ways to call a graph are those of the tests of the runtime; time is set by hand."""

import pytest

from stepwell.testing import FakeClock
from tests.runtime.conftest import call as call, chunks as chunks
from tests.runtime.deaths import Deaths, Saver


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, deaths: Deaths) -> FakeClock:
    """The clock of runs, stores and messages: it stands still until it is moved."""
    monkeypatch.setattr("stepwell.engine.wiring._CLOCK", deaths.clock)
    return deaths.clock


@pytest.fixture
def kept(clock: FakeClock) -> Saver:
    """An in-memory saver by that clock."""
    return Saver(clock)
