"""Tools for tests, ours and those of users: a clock that is set by hand, ids that count, crashes on demand.

`stepwell.testing.store_suite` is the specification of a store as a pytest suite; it needs pytest, nothing else here
does. Nothing in the package outside this folder imports it.
"""

from stepwell.testing.clock import FakeClock
from stepwell.testing.crash import SimulatedCrash, arm_from_environment, crash_at, record_points
from stepwell.testing.ids import CountingIds

__all__ = ["CountingIds", "FakeClock", "SimulatedCrash", "arm_from_environment", "crash_at", "record_points"]
