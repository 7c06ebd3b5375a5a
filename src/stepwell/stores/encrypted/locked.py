"""A database that is encrypted, and no key at hand: what is shown can be read, verified and deleted, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from stepwell.errors import DatabaseEncryptedError
from stepwell.store import (
    BlobRow,
    CheckpointRow,
    Claim,
    Commit,
    Deletion,
    EffectRow,
    Fault,
    ItemWrites,
    KeyWrites,
    Message,
    MessageRow,
    Pruned,
    Pruning,
    Reader,
    RecordRow,
    Repair,
    Restoration,
    Sealer,
    Store,
    StoreSize,
    ThreadRow,
    is_encrypted,
)
from stepwell.store.queued import Queued
from stepwell.stores.encrypted.cipher import DataKey
from stepwell.stores.encrypted.reader import DecryptingReader
from stepwell.stores.encrypted.travelling import travelling
from stepwell.stores.encrypted.unopened import opened_of
from stepwell.superstep.items import ItemWrite

Row = TypeVar("Row")


class LockedReader(DecryptingReader):
    """Reads what is shown. DatabaseEncryptedError for a row that says more."""

    def __init__(self, inner: Reader) -> None:
        self._inner = inner

    def thread(self, thread_id: str) -> ThreadRow | None:
        """Return the thread's row."""
        return self._inner.thread(thread_id)

    def faults(self, thread_id: str) -> list[Fault]:
        """Check every row of a thread as it is stored."""
        return self._inner.faults(thread_id)

    def _opened(
        self, table: str, owner: str, at: object, sealed: bytes, opened: Callable[[DataKey, Row], Row], row: Row
    ) -> Row:
        if is_encrypted(sealed):
            raise DatabaseEncryptedError(thread_id=owner)
        return row


class LockedSealer:
    """Seals nothing."""

    def checkpoint(self, columns: tuple[Any, ...]) -> CheckpointRow:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id=columns[0])

    def record(self, row: RecordRow) -> RecordRow:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id=row.thread_id)

    def effect(self, row: EffectRow) -> EffectRow:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id=row.thread_id)

    def blob_name(self, thread_id: str, body: bytes) -> bytes:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id=thread_id)

    def blob(self, row: BlobRow) -> BlobRow:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id=row.thread_id)

    def items(self, writes: Sequence[ItemWrite]) -> tuple[ItemWrite, ...]:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id="")


class LockedStore:
    """The contract's store over one whose keys are not at hand."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.blocking, self.counts = inner.blocking, inner.counts
        self.sealer: Sealer = LockedSealer()

    def admit(self, claim: Claim) -> ThreadRow | None:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id=claim.thread_id)

    def commit(self, commit: Commit) -> None:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id=commit.thread_id)

    def queue(self, commit: Commit | ItemWrites, wake: bool = True) -> Queued:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id=commit.thread_id)

    def settle(self, future: Queued) -> None:
        """Wait for a write that was queued: there is none."""
        self.inner.settle(future)

    def append(self, message: Message) -> MessageRow:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id=message.thread_id)

    def write_items(self, writes: ItemWrites) -> int:
        """Sweep what has expired; refuse everything else."""
        if writes.writes:
            raise DatabaseEncryptedError(thread_id="")
        return self.inner.write_items(writes)

    def write_keys(self, writes: KeyWrites) -> int:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id="")

    def renew(self, thread_id: str, run_id: str, epoch: int, lease_seconds: float) -> bool:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id=thread_id)

    def is_same(self, other: Store) -> bool:
        """Tell whether another store keeps the same database, locked too."""
        other = opened_of(other)
        return isinstance(other, LockedStore) and self.inner.is_same(other.inner)

    def is_held(self, thread: ThreadRow) -> bool:
        """Tell whether the run that has the thread's lease is alive."""
        return self.inner.is_held(thread)

    def repair(self, repair: Repair) -> bool:
        """Refuse."""
        raise DatabaseEncryptedError(thread_id=repair.thread_id)

    def delete(self, deletion: Deletion) -> bool:
        """Delete a thread: that takes no key."""
        return self.inner.delete(deletion)

    def prune(self, pruning: Pruning) -> Pruned | None:
        """Take rows out of a thread: that takes no key, once somebody who has it has chosen them."""
        return self.inner.prune(pruning)

    def restore(self, restoration: Restoration) -> bool:
        """Write a thread as it was stored elsewhere: that takes no key, unless an effect of it changes its own."""
        if any(travelling(row) is not None for row in restoration.rows()):
            raise DatabaseEncryptedError(thread_id=restoration.thread_id)
        return self.inner.restore(restoration)

    def size(self) -> StoreSize:
        """Return what the database takes."""
        return self.inner.size()

    def vacuum(self, full: bool = False) -> None:
        """Give back what holds nothing any more: that takes no key."""
        self.inner.vacuum(full)

    @contextmanager
    def reading(self) -> Iterator[LockedReader]:
        """Open one consistent snapshot."""
        with self.inner.reading() as reader:
            yield LockedReader(reader)

    def verify(self) -> Iterator[Fault]:
        """Check every row as it is stored: that takes no key."""
        return self.inner.verify()

    def close(self) -> None:
        """Close the store below."""
        self.inner.close()
