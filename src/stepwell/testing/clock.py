"""A clock that moves only when told to."""

from __future__ import annotations


class FakeClock:
    """All three clocks of `stepwell.clock.Clock`, set by hand. `advance` moves them together; each may be set alone."""

    def __init__(self, now: int = 1_700_000_000_000_000, boottime: float = 1000.0, boot_id: str = "fake-boot") -> None:
        self.wall_microseconds = now
        self.monotonic_seconds = boottime
        self.boottime_seconds = boottime
        self.boot = boot_id

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.wall_microseconds += round(seconds * 1_000_000)
        self.monotonic_seconds += seconds
        self.boottime_seconds += seconds

    def reboot(self, boot_id: str) -> None:
        """Start the host anew: boot time from zero, under another boot id."""
        self.boottime_seconds = 0.0
        self.boot = boot_id

    def now(self) -> int:
        return self.wall_microseconds

    def monotonic(self) -> float:
        return self.monotonic_seconds

    def boottime(self) -> float:
        return self.boottime_seconds

    def boot_id(self) -> str:
        return self.boot
