"""A store of which nobody has asked anything yet: whether it is encrypted, and whether the keys fit, is found out with
the first question. For databases that are not connected to before they are used.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from stepwell.store import (
    Claim,
    Commit,
    Deletion,
    Fault,
    ItemWrites,
    KeyWrites,
    Message,
    MessageRow,
    Pruned,
    Pruning,
    Reader,
    Repair,
    Restoration,
    Sealer,
    Store,
    StoreSize,
    ThreadRow,
)
from stepwell.store.queued import Queued

Layer = TypeVar("Layer")


class UnopenedStore:
    """The contract's store, as `decide` makes it of the one below when it is first used. What else that one has is
    reached through this."""

    def __init__(self, inner: Store, decide: Callable[[Store], Store]) -> None:
        self.inner = inner
        self.blocking, self.counts = inner.blocking, inner.counts
        self._decide, self._decided = decide, False
        self._store = inner
        self._lock = threading.Lock()

    @property
    def opened(self) -> Store:
        """The store that is used. Asks the database, the first time; where that fails, it is asked again."""
        if not self._decided:
            with self._lock:
                if not self._decided:
                    self._store = self._decide(self.inner)
                    self._decided = True
        return self._store

    @property
    def sealer(self) -> Sealer:
        return self.opened.sealer

    def admit(self, claim: Claim) -> ThreadRow | None:
        return self.opened.admit(claim)

    def commit(self, commit: Commit) -> None:
        self.opened.commit(commit)

    def queue(self, commit: Commit | ItemWrites, wake: bool = True) -> Queued:
        return self.opened.queue(commit, wake)

    def settle(self, future: Queued) -> None:
        self.opened.settle(future)

    def append(self, message: Message) -> MessageRow:
        return self.opened.append(message)

    def write_items(self, writes: ItemWrites) -> int:
        return self.opened.write_items(writes)

    def write_keys(self, writes: KeyWrites) -> int:
        return self.opened.write_keys(writes)

    def renew(self, thread_id: str, run_id: str, epoch: int, lease_seconds: float) -> bool:
        return self.opened.renew(thread_id, run_id, epoch, lease_seconds)

    def is_same(self, other: Store) -> bool:
        return self.opened.is_same(opened_of(other))

    def is_held(self, thread: ThreadRow) -> bool:
        return self.opened.is_held(thread)

    def delete(self, deletion: Deletion) -> bool:
        return self.opened.delete(deletion)

    def prune(self, pruning: Pruning) -> Pruned | None:
        return self.opened.prune(pruning)

    def restore(self, restoration: Restoration) -> bool:
        return self.opened.restore(restoration)

    def repair(self, repair: Repair) -> bool:
        return self.opened.repair(repair)

    def size(self) -> StoreSize:
        return self.opened.size()

    def vacuum(self, full: bool = False) -> None:
        self.opened.vacuum(full)

    def reading(self) -> AbstractContextManager[Reader]:
        return self.opened.reading()

    def verify(self) -> Iterator[Fault]:
        return self.opened.verify()

    def close(self) -> None:
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # of a copy that is not filled in yet
            raise AttributeError(name)
        return getattr(self.inner, name)


def opened_of(store: Store) -> Store:
    """Return the store that is used in place of this one."""
    return store.opened if isinstance(store, UnopenedStore) else store


def layer_of(store: Store, kind: type[Layer]) -> Layer | None:
    """Return the store of this kind among those that stand over the database; None where there is none."""
    found: Any = opened_of(store)
    while found is not None and not isinstance(found, kind):
        found = opened_of(getattr(found, "inner", None))  # type: ignore[arg-type]
    return found
