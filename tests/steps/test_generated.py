"""Random workflows, killed wherever anything becomes durable, end as if nothing had happened to them.

No step whose success is on record is ever called again (INV-4).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from stepwell import points
from stepwell.runtime.ledger import LEASE_SECONDS
from stepwell.testing import FakeClock, SimulatedCrash
from tests.runtime.deaths import Saver
from tests.runtime.graphs import thread
from tests.steps.workflows import Code, Memory, Workflow, drive, expected, recorded, workflows

pytestmark = pytest.mark.timeout(1800)  # for the profile that looks for new examples
APIS, MODES = st.sampled_from(("sync", "async")), st.sampled_from(("sync", "async", "exit"))


class Lives:
    """Threads that go through one workflow, and what is killed while it works on them."""

    def __init__(self, workflow: Workflow, saver: Saver, clock: FakeClock, api: str, durability: str) -> None:
        self.saver, self.clock, self.api, self.durability = saver, clock, api, durability
        self.code = Code(workflow, Memory())
        self.graph = self.code.graph(saver)
        self.reached = 0
        """Points that the last process has reached."""
        self._threads = itertools.count()

    def end(self, deaths: list[int]) -> list[object] | None:
        """Return what a new thread ends with whose processes die so: each when it has reached so many points."""
        world = self.code.world = Memory()
        thread_id = f"t{next(self._threads)}"
        for dies_at in deaths:
            if (end := self._live(thread_id, dies_at)) is not None:
                break
        else:
            end = self._live(thread_id, None)
        paid = list(world.paid.values())
        assert len(paid) == len(set(paid)), "an effect was performed under two keys"
        return end

    def _live(self, thread_id: str, dies_at: int | None) -> list[object] | None:
        epoch, known = recorded(self.saver, thread_id)
        world = self.code.world
        assert isinstance(world, Memory)
        points.hook = self._hook(dies_at)
        try:
            return drive(self.graph, thread(thread_id), self.api, self.durability)
        except SimulatedCrash:
            return None
        finally:
            points.hook = None
            again = {called.step for called in world.called if called.epoch > epoch} & known
            assert again == set(), "what is on record was called again"
            self.clock.advance(LEASE_SECONDS + 1)

    def _hook(self, dies_at: int | None) -> Callable[[str], None]:
        self.reached = 0
        dead = False

        def hook(point: str) -> None:
            nonlocal dead
            self.reached += 1
            dead = dead or self.reached == dies_at
            if dead:
                raise SimulatedCrash(point)

        return hook


@given(workflows(), APIS, MODES, st.lists(st.floats(0, 1), min_size=6, max_size=6))
def test_a_workflow_killed_at_any_point_ends_as_if_nothing_had_happened(
    workflow: Workflow, api: str, durability: str, when: list[float]
) -> None:
    clock = FakeClock()
    with Saver(clock) as saver:
        lives = Lives(workflow, saver, clock, api, durability)
        assert lives.end([]) == expected(workflow)
        for dies_at in {1 + round(part * (lives.reached - 1)) for part in when}:
            assert lives.end([dies_at]) == expected(workflow), f"killed at point {dies_at}"
        assert list(saver.store.verify()) == []


@given(workflows(), APIS, MODES, st.lists(st.integers(1, 40), max_size=6))
def test_a_workflow_killed_again_and_again_ends_as_if_nothing_had_happened(
    workflow: Workflow, api: str, durability: str, deaths: list[int]
) -> None:
    clock = FakeClock()
    with Saver(clock) as saver:
        assert Lives(workflow, saver, clock, api, durability).end(deaths) == expected(workflow)
        assert list(saver.store.verify()) == []
