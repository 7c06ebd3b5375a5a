"""Time, injectable: wall time for records, monotonic time for durations, boot time for leases on one host.

Nothing else in the package reads a clock. Sleeping is the driver's (it may be interrupted by news), never the clock's.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """What the engine asks of time. Seconds are floats; wall time is integer microseconds UTC."""

    def now(self) -> int:
        """Return wall time in microseconds since the epoch, UTC. It may step backwards; nothing orders by it."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go backwards within this process."""
        ...

    def boottime(self) -> float:
        """Return seconds since this host booted, suspend included: the same for every process of the host."""
        ...

    def boot_id(self) -> str:
        """Return the id of this boot. Boot times of different boots do not compare."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()

    def boottime(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME) if _BOOT_ID else time.time()

    def boot_id(self) -> str:
        return _BOOT_ID


def _read_boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""  # no boot id on this platform: boot time is wall time, which outlives a boot


_BOOT_ID = _read_boot_id()
