"""What happens to open stores when the process forks.

SQLite tracks its file locks per process, in memory that a fork copies although the kernel's locks are not. A
connection that is open across a fork makes the child believe in locks it does not hold, even on connections of its own.
So files are closed before the fork and reopened by whoever uses them next, parent or child. What cannot be closed,
because it is in use at that moment, makes the child's copy of the store refuse work.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    """A store that must know of forks."""

    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_stopped: list[Forkable] = []
_forking = threading.Lock()


def watch(store: Forkable) -> None:
    """Tell the store of forks for as long as it lives."""
    _watched.add(store)


def _before() -> None:
    _forking.acquire()
    _stopped.extend(_watched)
    for store in _stopped:
        store.before_fork()


def _in_parent() -> None:
    for store in _stopped:
        store.after_fork_in_parent()
    _stopped.clear()
    _forking.release()


def _in_child() -> None:
    for store in _stopped:
        store.after_fork_in_child()
    _stopped.clear()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
