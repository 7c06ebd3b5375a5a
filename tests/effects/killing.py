"""Kills processes that pay: at crash points, at moments of the call, and while the server holds the request.

Or freezes them there until another process has taken over and finished.
"""

import os
import signal
from pathlib import Path
from typing import Any

from stepwell.testing.payments import Account, Fault
from tests.e2e.forked import Processes
from tests.effects.payment_child import CONFIG, LOST, SHAPES, Job, Nodes, Till, build, open_saver

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

    def run_killed(self, where: str) -> bool:
        """Drive the thread in a process that is killed there, as "answered:2"; return whether it came by."""
        moment, _, nth = where.rpartition(":")
        if moment in (HELD_BEFORE, HELD_CHARGED):
            self._kill_while_held(moment, int(nth))
            return True
        job = self.job._replace(crash=where) if "." in moment else self.job._replace(dies=where)
        status = self.processes.run(job)
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

    def finished(self) -> list[str]:
        """Return the log of the finished thread; every row must verify."""
        with open_saver(self.job.folder) as saver:
            graph: Any = build(self.job, Nodes(Till(self.job), self.job)).compile(
                checkpointer=saver, name=self.job.shape
            )
            snapshot = graph.get_state(CONFIG)
            assert list(saver.store.verify()) == []
            assert snapshot.next == ()
            log: list[str] = snapshot.values["log"]
            return log

    def undisturbed(self) -> list[str]:
        """Return the log of a thread to which nothing happened."""
        return [*(f"paid 5 for {reference}" for reference in SHAPES[self.job.shape]), "shipped"]
