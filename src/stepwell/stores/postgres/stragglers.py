"""Writes whose thread's row another transaction has: each waits for it on its own connection, and stalls nobody.

Those of one thread are answered in the order in which they were queued, and what comes later for that thread waits
behind them. A thread that is not waited for costs one look at an empty mapping.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from stepwell.stores.shared.member import Member


class Stragglers:
    """Members that were put off, by thread."""

    def __init__(self, answer: Callable[[Member], None]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self._of: dict[str, deque[Member]] = {}
        self._serving: set[threading.Thread] = set()

    def any(self) -> bool:
        """Tell whether some member waits."""
        return bool(self._of)

    def take_behind(self, member: Member) -> bool:
        """Take a member where others of its thread wait already; False where none does."""
        with self._lock:
            queue = self._of.get(member.work.thread_id)
            if queue is None:
                return False
            member.put_off()
            queue.append(member)
        return True

    def take(self, member: Member) -> None:
        """Take a member whose thread's row somebody else has."""
        if self.take_behind(member):
            return
        thread_id = member.work.thread_id
        thread = threading.Thread(target=self._serve, args=(thread_id,), name="stepwell-straggler", daemon=True)
        with self._lock:
            member.put_off()
            self._of[thread_id] = deque([member])
            self._serving.add(thread)
        thread.start()

    def join(self) -> None:
        """Wait until all are answered."""
        while self._serving:
            for thread in tuple(self._serving):
                thread.join()

    def forget(self) -> None:
        """Leave them to the process this one was forked from."""
        self._lock = threading.Lock()
        self._of, self._serving = {}, set()

    def _serve(self, thread_id: str) -> None:
        try:
            while True:
                member = self._of[thread_id][0]
                try:
                    self._answer(member)
                except BaseException as error:  # every member must be answered, whatever came
                    member.fail(error)
                finally:
                    with self._lock:
                        queue = self._of[thread_id]
                        queue.popleft()
                        if not queue:
                            del self._of[thread_id]
                    member.answer_late()
                if not queue:
                    return
        finally:
            self._serving.discard(threading.current_thread())
