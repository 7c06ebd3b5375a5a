"""The clock of leases: the database's, for every process that shares it.

A process that gives a lease must know the time before it writes, since the thread row's digest covers the lease. So it
reckons the database's clock from the last answer that told it and the host's own clock since. What it reckons only says
how long others wait; whether a lease has expired, the database decides by its own clock, and only the epoch fences.
A clock that was injected is everybody's.
"""

from __future__ import annotations

from stepwell.clock import Clock, SystemClock
from stepwell.stores.shared.holder import is_dead, this_process
from stepwell.stores.shared.statements import Leases


class LeaseClock:
    """Reckons the database's time."""

    def __init__(self, injected: Clock | None) -> None:
        self._injected = injected
        self._host = injected or SystemClock()
        self._ahead: float | None = None
        self.boot_id = self._host.boot_id()

    @property
    def known(self) -> bool:
        """Whether the database has told its time yet, or need not."""
        return self._injected is not None or self._ahead is not None

    def told(self, now: float) -> None:
        """Take note of what the database's clock says."""
        self._ahead = now - self._host.boottime()

    def now(self) -> float:
        """Return the time that leases run by."""
        if self._injected is not None:
            return self._injected.boottime()
        return self._host.boottime() + (self._ahead or 0.0)

    def asked(self) -> float | None:
        """Return what the database is told to take for the time; None: its own clock."""
        return None if self._injected is None else self._injected.boottime()

    def leases(self) -> Leases:
        """Return whose leases this process gives."""
        return Leases(this_process(self.boot_id), self.now, self.asked, lambda holder: is_dead(holder, self.boot_id))
