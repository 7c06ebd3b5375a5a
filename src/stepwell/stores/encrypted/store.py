"""The contract's store over another one, with everything a user gave or a node made encrypted.

What the engine makes whole it has sealed by `sealer`; runs, events and messages, whose rows the store below completes,
are encrypted here on their way in. The rule: a data key is durable with the first row that needs it or before, in that
row's transaction, and no thread ever has two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stepwell.clock import Clock, SystemClock
from stepwell.errors import (
    KeyTakenError,
    MessageConflictError,
    PlaintextDatabaseError,
)
from stepwell.store import (
    WHOLE_DATABASE,
    Claim,
    Commit,
    Deletion,
    Fault,
    ItemWrites,
    KeyRow,
    KeyWrites,
    Message,
    MessageRow,
    Pruned,
    Pruning,
    Repair,
    Restoration,
    Sealer,
    Store,
    StoreSize,
    ThreadRow,
    ThreadsQuery,
    content_digest,
    is_encrypted,
)
from stepwell.store.queued import Queued
from stepwell.stores.encrypted.cipher import name_in
from stepwell.stores.encrypted.encryption import Encryption
from stepwell.stores.encrypted.keyring import Keyring
from stepwell.stores.encrypted.reader import DecryptingReader
from stepwell.stores.encrypted.sealer import EncryptingSealer
from stepwell.stores.encrypted.travelling import arriving
from stepwell.stores.encrypted.unopened import opened_of

ATTEMPTS = 8


class EncryptedStore:
    """Encrypts on the way in, decrypts on the way out. Everything else is the store's below."""

    def __init__(self, inner: Store, encryption: Encryption, clock: Clock | None = None) -> None:
        self.inner = inner
        self.blocking, self.counts = inner.blocking, inner.counts
        self.encryption = encryption
        self.keys = Keyring(encryption, clock or SystemClock(), self._read_key)
        self._sealer = EncryptingSealer(self.keys)
        self.sealer: Sealer = self._sealer
        self._open()

    def _open(self) -> None:
        """Have a key for the database, or unwrap the one it has: a wrong key is found out now."""
        row = self._read_key(WHOLE_DATABASE)
        if row is None:
            if not self.encryption.accept_plaintext and holds_anything(self.inner):
                raise PlaintextDatabaseError()
            self.inner.write_keys(KeyWrites([self.keys.held(WHOLE_DATABASE).row]))
            self.keys.drop(WHOLE_DATABASE)  # another process may have been faster
            row = self._read_key(WHOLE_DATABASE)
        assert row is not None
        self.keys.key_of(row)

    def _read_key(self, thread_id: str) -> KeyRow | None:
        with self.inner.reading() as reader:
            return reader.key(thread_id)

    # -- writing ------------------------------------------------------------------------------------------------------

    def admit(self, claim: Claim) -> ThreadRow | None:
        """Take the thread; its data key is written with it where it is new."""
        held = self.keys.held(claim.thread_id)
        if any(is_encrypted(body) and name_in(body) != held.key.name for body in _bodies(claim)):
            return None  # made with a key that another writer was faster to replace: to be read and made again
        claim.key = held.row if claim.seen is None or not held.durable else None
        claim.run = None if claim.run is None else self._sealer.run(claim.run)
        claim.ended = None if claim.ended is None else self._sealer.run(claim.ended)
        claim.runs = [self._sealer.run(run) for run in claim.runs]
        claim.rows = self._with_events(claim.thread_id, claim.rows)
        try:
            admitted = self.inner.admit(claim)
        except KeyTakenError:
            admitted = None
        if admitted is None:
            self.keys.drop(claim.thread_id)
        else:
            held.durable = True
        return admitted

    def commit(self, commit: Commit) -> None:
        """Write under the fence."""
        self.inner.commit(self._ready(commit))

    def queue(self, commit: Commit | ItemWrites, wake: bool = True) -> Queued:
        """Queue the same write."""
        return self.inner.queue(self._ready(commit) if isinstance(commit, Commit) else commit, wake)

    def settle(self, future: Queued) -> None:
        """Wait for a queued write."""
        self.inner.settle(future)

    def append(self, message: Message) -> MessageRow:
        """Leave a message; the thread's data key is written with it where the thread has none yet."""
        for _ in range(ATTEMPTS):
            since = self.keys.moments()  # who leaves a message has not read the thread, and it may have been deleted
            self.keys.offer(message.thread_id, self._read_key(message.thread_id), since)
            sealed = self._sealer.message(message)
            try:
                row = self.inner.append(sealed)
            except KeyTakenError:
                self.keys.drop(message.thread_id)
                continue
            except MessageConflictError:
                return self._known_in_plaintext(message)
            if row.body == sealed.body:
                return row._replace(key=message.key, body=message.body)
            with self.reading() as reader:
                return reader.opened_message(row)
        raise KeyTakenError(thread_id=message.thread_id)

    def write_items(self, writes: ItemWrites) -> int:
        """Write items of no run; they were sealed where they were made."""
        return self.inner.write_items(writes)

    def write_keys(self, writes: KeyWrites) -> int:
        """Write data keys."""
        return self.inner.write_keys(writes)

    def renew(self, thread_id: str, run_id: str, epoch: int, lease_seconds: float) -> bool:
        """Extend the lease."""
        return self.inner.renew(thread_id, run_id, epoch, lease_seconds)

    def delete(self, deletion: Deletion) -> bool:
        """Delete a thread, its data key with it."""
        deleted = self.inner.delete(deletion)
        self.keys.forget(deletion.thread_id)
        return deleted

    def prune(self, pruning: Pruning) -> Pruned | None:
        """Take rows out of a thread: nothing of them is looked at."""
        return self.inner.prune(pruning)

    def restore(self, restoration: Restoration) -> bool:
        """Write a thread as it was stored elsewhere, its data key with it."""
        restored = self.inner.restore(arriving(restoration, self.keys, self._sealer))
        self.keys.forget(restoration.thread_id)
        return restored

    def repair(self, repair: Repair) -> bool:
        """Write a repair. Its checkpoint, record and effects are sealed already."""
        repair.runs = [(self._sealer.run(run), epoch) for run, epoch in repair.runs]
        return self.inner.repair(repair)

    def size(self) -> StoreSize:
        """Return what the database takes."""
        return self.inner.size()

    def vacuum(self, full: bool = False) -> None:
        """Give back what holds nothing any more."""
        self.inner.vacuum(full)

    def _known_in_plaintext(self, message: Message) -> MessageRow:
        """Return the message that has this id, if it is the same and was left before there was encryption."""
        with self.reading() as reader:
            known = reader.message(message.thread_id, message.message_id)
        same = content_digest(message.kind, message.key, message.body)
        if known is None or known.content != same or not self.encryption.accept_plaintext:
            raise MessageConflictError(thread_id=message.thread_id, message_id=message.message_id, key=message.key)
        return known

    def _ready(self, commit: Commit) -> Commit:
        if commit.run is not None:
            commit.run = self._sealer.run(commit.run)
        if commit.rows.events:
            commit.rows = self._with_events(commit.thread_id, commit.rows)
        return commit

    def _with_events(self, thread_id: str, rows: Any) -> Any:
        return rows._replace(events=[self._sealer.event(thread_id, draft) for draft in rows.events])

    # -- reading ------------------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[DecryptingReader]:
        """Open one consistent snapshot."""
        since = self.keys.moments()
        with self.inner.reading() as reader:
            yield DecryptingReader(reader, self.keys, since, self.encryption.accept_plaintext)

    def verify(self) -> Iterator[Fault]:
        """Check every row; then that every thread's rows decrypt in their places."""
        yield from self.inner.verify()
        yield from self._unreadable()
        with self.reading() as reader:
            yield from reader.unopened_items()

    def _unreadable(self) -> Iterator[Fault]:
        before: tuple[int, str] | None = None
        while True:
            with self.inner.reading() as reader:
                threads = reader.threads(ThreadsQuery(before=before, limit=100))
            for thread in threads:
                with self.reading() as opened:
                    yield from opened.unopened(thread.thread_id)
            if len(threads) < 100:
                return
            before = (threads[-1].updated_at, threads[-1].thread_id)

    # -- the rest is the store's below --------------------------------------------------------------------------------

    def is_same(self, other: Store) -> bool:
        """Tell whether another store keeps the same database, under the same keys."""
        other = opened_of(other)
        return isinstance(other, EncryptedStore) and self.inner.is_same(other.inner)

    def is_held(self, thread: ThreadRow) -> bool:
        """Tell whether the run that has the thread's lease is alive."""
        return self.inner.is_held(thread)

    def close(self) -> None:
        """Close the store below."""
        self.inner.close()


def holds_anything(store: Store) -> bool:
    """Tell whether a database holds a thread or an item."""
    with store.reading() as reader:
        return bool(reader.threads(ThreadsQuery(limit=1)) or reader.item_namespaces(0))


def _bodies(claim: Claim) -> Iterator[bytes]:
    rows = claim.rows
    yield from (row.body for row in rows.checkpoints)
    yield from (row.body for row in rows.records)
    yield from (row.body for row in rows.blobs)
    yield from (change.row.body for change in rows.effects if change.row.scope != "global")
