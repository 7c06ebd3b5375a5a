"""The tools for tests: what they say they do."""

import pytest

from stepwell import points
from stepwell.clock import Clock
from stepwell.ids import Ids
from stepwell.testing import CountingIds, FakeClock, SimulatedCrash, crash_at, record_points


def test_a_fake_clock_moves_when_told() -> None:
    clock = FakeClock()
    as_clock: Clock = clock
    before = (as_clock.now(), as_clock.monotonic(), as_clock.boottime())
    clock.advance(1.5)
    after = (as_clock.now(), as_clock.monotonic(), as_clock.boottime())
    assert [b - a for a, b in zip(before, after, strict=True)] == [1_500_000, 1.5, 1.5]
    clock.reboot("next")
    assert (as_clock.boottime(), as_clock.boot_id()) == (0.0, "next")


def test_counting_ids_sort_by_time_of_making() -> None:
    ids: Ids = CountingIds()
    made = [ids.new() for _ in range(300)]
    assert made == sorted(set(made))
    assert made[0] == f"{1:032x}"


def test_a_crash_strikes_at_the_nth_reach_and_once() -> None:
    with crash_at(points.MERGED, 2):
        points.reach(points.MERGED)
        points.reach(points.COMMITTED)
        with pytest.raises(SimulatedCrash, match=points.MERGED):
            points.reach(points.MERGED)
        points.reach(points.MERGED)
    assert points.hook is None


def test_a_crash_is_no_exception_that_user_code_swallows() -> None:
    assert not issubclass(SimulatedCrash, Exception)


def test_an_unknown_point_is_refused() -> None:
    with pytest.raises(ValueError, match="no crash point"), crash_at("nowhere"):
        pass


def test_points_are_recorded_in_order() -> None:
    with record_points() as reached:
        for point in points.ALL:
            points.reach(point)
    points.reach(points.ENDED)
    assert tuple(reached) == points.ALL
