"""Keeps the leases of running runs alive, from a thread of its own: a node that blocks its loop loses nothing.

A lease is renewed each third of its length. A run whose stream's consumer has held a chunk for a whole lease is not
renewed: nobody is waiting for it. Losing a lease needs no action here; the fence refuses the run's next commit.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref

from stepwell.errors import SaverClosedError, StepwellError
from stepwell.runtime.ledger import LEASE_SECONDS
from stepwell.runtime.run import Run
from stepwell.store import Store

log = logging.getLogger("stepwell.lease")


class LeaseKeeper:
    """Renews the leases held through one store."""

    def __init__(self, store: Store, lease_seconds: float = LEASE_SECONDS) -> None:
        self._store = store
        self._lease_seconds = lease_seconds
        self._held: dict[Run, float] = {}
        """Run → when its lease was last known to be fresh (monotonic seconds)."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        _keepers.add(self)

    def hold(self, run: Run) -> None:
        """Keep this run's lease from now on."""
        with self._changed:
            self._held[run] = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep, name="stepwell-leases", daemon=True)
                self._thread.start()

    def let_go(self, run: Run) -> None:
        """Stop keeping it: the run has ended and released it, or will be taken over."""
        with self._changed:
            self._held.pop(run, None)

    def after_fork(self) -> None:
        """A child inherits no lease and no thread."""
        self._held = {}
        self._changed = threading.Condition()
        self._thread = None

    def _keep(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(self._lease_seconds / 6)
                if not self._held:
                    self._thread = None
                    return
            self.renew_due(time.monotonic())

    def renew_due(self, now: float) -> None:
        """Renew every lease that is a third old."""
        with self._changed:
            due = [run for run, since in self._held.items() if now - since >= self._lease_seconds / 3]
        for run in due:
            if not self._stalled(run, now):
                self._renew(run, now)

    def _stalled(self, run: Run, now: float) -> bool:
        since = run.stream.waiting_since if run.stream is not None else None
        return since is not None and now - since >= self._lease_seconds

    def _renew(self, run: Run, now: float) -> None:
        thread_id = run.config.thread_id
        assert thread_id is not None
        try:
            kept = self._store.renew(thread_id, run.run_id, run.ledger.epoch, self._lease_seconds)
        except SaverClosedError:  # nothing can be renewed through it any more, nor written
            with self._changed:
                self._held.clear()
            log.warning("lease of thread %s (run %s) is given up: its saver was closed", thread_id, run.run_id)
            return
        except StepwellError as error:  # a missed renewal is not a lost lease: the next one may succeed
            log.warning("lease of thread %s (run %s) not renewed, will try again: %s", thread_id, run.run_id, error)
            return
        with self._changed:
            if not kept:
                self._held.pop(run, None)
                log.warning("lease of thread %s (run %s) is lost: another run took over", thread_id, run.run_id)
            elif run in self._held:
                self._held[run] = now


_keepers: weakref.WeakSet[LeaseKeeper] = weakref.WeakSet()


def _forget_all() -> None:
    for keeper in list(_keepers):
        keeper.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
