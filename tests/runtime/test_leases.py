"""Leases while a run works: a renewal that is missed, and one that comes too late."""

import time
from typing import Any

import pytest

from stepwell import InMemorySaver, RetryPolicy, SaverClosedError, SqliteSaver, StateGraph, ThreadBusyError, points
from stepwell.graph.types import START
from stepwell.runtime.ledger import LEASE_SECONDS
from tests.runtime.deaths import Deaths, Saver, failing_at
from tests.runtime.graphs import Flaky, Log, chain, thread

LATER = LEASE_SECONDS / 3 + 1
"""Seconds after which a lease is due to be renewed."""


def test_J11_a_renewal_that_fails_is_tried_again_and_the_run_goes_on(
    saver: SqliteSaver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Prefect's reports 21064 and 20251: one missed heartbeat ended a healthy run."""

    def node(state: Log) -> dict[str, list[str]]:
        keeper = graph._leases
        with monkeypatch.context() as patch:
            patch.setattr(points, "hook", failing_at(1))
            keeper.renew_due(time.monotonic() + LATER)
        missed = saver.store.counts.renewals
        keeper.renew_due(time.monotonic() + LATER)
        assert saver.store.counts.renewals == missed + 1
        return {"log": ["done"]}

    graph: Any = chain(("node", node)).compile(checkpointer=saver)
    assert graph.invoke({}, thread()) == {"log": ["done"]}
    told = [record.getMessage() for record in caplog.records if record.name == "stepwell.lease"]
    assert len(told) == 1
    assert "lease of thread t" in told[0]
    assert "not renewed, will try again" in told[0]


def test_J11_a_lease_is_kept_over_the_wait_for_the_next_attempt(deaths: Deaths) -> None:
    """Prefect's report 18942: a lease that was let go during a retry's delay let somebody else in."""
    saver, refused = Saver(deaths.clock), list[Exception]()

    def meanwhile(error: Exception) -> bool:
        """Asked once the attempt has failed: wait through a whole lease, renewed on the way, and try to get in."""
        for nth in range(1, 5):
            deaths.clock.advance(LATER)
            graph._leases.renew_due(time.monotonic() + LATER * nth)
        with pytest.raises(ThreadBusyError):
            other.update_state(thread(), {"log": ["other"]})
        refused.append(error)
        return True

    policy = RetryPolicy(initial_interval=0, jitter=False, retry_on=meanwhile)
    builder = StateGraph(Log).add_node("a", Flaky("a"), retry_policy=policy).add_edge(START, "a")
    graph: Any = builder.compile(checkpointer=saver, name="g")
    other = chain(("a", Flaky("a"))).compile(checkpointer=saver, name="g")
    assert graph.invoke({}, thread()) == {"log": ["a"]}
    assert len(refused) == 1


def test_J11_a_late_renewal_changes_nothing_of_a_run_that_has_ended(saver: SqliteSaver) -> None:
    """Prefect's report 20251: a finished run was turned into a crashed one by a renewal that came after its end."""
    graph = chain(("a", lambda state: {"log": ["a"]})).compile(checkpointer=saver)
    graph.invoke({}, thread())
    before = (saver.runs("t"), list(saver.threads()))
    (run,) = saver.runs("t")
    assert not saver.store.renew("t", run.run_id, 1, LEASE_SECONDS)
    assert (saver.runs("t"), list(saver.threads())) == before
    assert graph.invoke({}, thread()) == {"log": ["a", "a"]}


def test_J11_nobody_goes_on_renewing_through_a_saver_that_was_closed(caplog: pytest.LogCaptureFixture) -> None:
    """A run whose saver was closed under it has lost its lease for good; trying again would never end."""

    def node(state: Log) -> dict[str, list[str]]:
        saver.close()
        for nth in range(1, 4):
            graph._leases.renew_due(time.monotonic() + LATER * nth)
        return {"log": ["done"]}

    saver = InMemorySaver()
    graph: Any = chain(("node", node)).compile(checkpointer=saver)
    with pytest.raises(SaverClosedError):
        graph.invoke({}, thread())
    [told] = [record.getMessage() for record in caplog.records if record.name == "stepwell.lease"]
    assert "is given up: its saver was closed" in told
