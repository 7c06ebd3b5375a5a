"""Kills processes that pay: at crash points, at moments of the call, and while the server holds the request.

Or freezes them there until another process has taken over and finished.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepwell import SqliteSaver
from stepwell.store import EffectRow
from stepwell.testing.payments import Account, Fault
from tests.e2e.forked import Processes
from tests.effects.acting import rows
from tests.effects.payment_child import CONFIG, LOST, SHAPES, Job, open_graph, open_saver, places_passed, till_of

KILLED = -signal.SIGKILL
HELD_BEFORE, HELD_CHARGED = "held", "held charged"
"""Where a process may be killed while it waits for its answer: the server has not charged yet, or has."""


class Shop:
    """A folder in which one thread lives, the account it charges, and what can be seen of both from outside."""

    def __init__(self, folder: Path, account: Account, job: Job, processes: Processes) -> None:
        self.account, self.processes = account, processes
        self.job = job._replace(folder=str(folder), url=account.url)

    def run(self) -> None:
        """Drive the thread to its end in a process that nothing happens to."""
        assert self.processes.run(self.job) == 0

    def passed(self) -> list[str]:
        """Return what the last process that was not to die came by, in order, each as "answered:2"."""
        passed = places_passed(self.job)
        return [f"{place}:{passed[: i + 1].count(place)}" for i, place in enumerate(passed)]

    def run_killed(self, where: str) -> bool:
        """Drive the thread in a process that is killed there, as "answered:2"; return whether it came by."""
        moment, _, nth = where.rpartition(":")
        if moment in (HELD_BEFORE, HELD_CHARGED):
            self._kill_while_held(moment, int(nth))
            return True
        status = self.processes.run(self.job._replace(crash=where))
        assert status in (0, KILLED)
        return status == KILLED

    def _kill_while_held(self, moment: str, nth: int) -> None:
        reference = SHAPES[self.job.shape][nth - 1]
        self.account.script(Fault("hold", charged=moment == HELD_CHARGED, reference=reference))
        pid = self.processes.start(self.job)
        self.account.wait_held()
        os.kill(pid, signal.SIGKILL)
        assert self.processes.wait() == KILLED
        self.account.release()

    def run_frozen(self, heirs: Processes) -> None:
        """Freeze a process while the server holds its first, charged request; let another finish; then thaw it.

        What was frozen past its lease gets its answer, and is told that the thread is no longer its own.
        """
        self.account.script(Fault("hold"))
        pid = self.processes.start(self.job)
        self.account.wait_held()
        os.kill(pid, signal.SIGSTOP)
        assert heirs.run(self.job) == 0
        self.account.release()
        os.kill(pid, signal.SIGCONT)
        assert self.processes.wait() == LOST

    @contextmanager
    def opened(self) -> Iterator[tuple[Any, SqliteSaver]]:
        """The graph, as this process sees it, and its threads; every row must verify."""
        with open_saver(self.job.folder) as saver:
            yield open_graph(self.job, saver, till_of(self.job)), saver
            assert list(saver.store.verify()) == []

    def finished(self) -> tuple[list[str], list[EffectRow]]:
        """Return the log and the effects of the finished thread."""
        with self.opened() as (graph, saver):
            snapshot = graph.get_state(CONFIG)
            assert snapshot.next == ()
            return snapshot.values["log"], rows(saver, "t")

    def effects(self) -> list[EffectRow]:
        """Return the thread's effects as they stand."""
        with self.opened() as (_, saver):
            return rows(saver, "t")

    def doubts(self) -> list[str]:
        """Return the keys of which somebody was told that they are in doubt, as often as somebody was."""
        return till_of(self.job).doubts()

    def undisturbed(self) -> list[str]:
        """Return the log of a thread to which nothing happened."""
        return [*(f"paid 5 for {reference}" for reference in SHAPES[self.job.shape]), "shipped"]
