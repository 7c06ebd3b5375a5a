"""From a store to the one that is used: encrypted where keys are given, locked where they are missing. And data keys
wrapped anew, when the key that wrapped them is to go.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stepwell import points
from stepwell.clock import Clock
from stepwell.errors import DatabaseEncryptedError, EncryptionError, InvalidConfigError
from stepwell.store import WHOLE_DATABASE, KeyRow, KeyWrites, Store
from stepwell.stores.encrypted.encryption import Encryption, checked_encryption
from stepwell.stores.encrypted.locked import LockedStore
from stepwell.stores.encrypted.store import EncryptedStore
from stepwell.stores.encrypted.unopened import UnopenedStore, layer_of
from stepwell.stores.shared.compressing import with_compression

PAGE = 200
"""Data keys that are wrapped anew in one transaction."""


def with_encryption(store: Store, encryption: Encryption | None, clock: Clock | None = None) -> Store:
    """Return the store to use. Closes the one given where it cannot be used as told."""
    try:
        return _decided(store, checked_encryption(encryption), clock)
    except BaseException:
        store.close()
        raise


def with_encryption_later(
    store: Store, encryption: Encryption | None, clock: Clock | None = None, compress_above: int | None = None
) -> Store:
    """Return the store to use of a database that nothing may be asked before it is first used."""
    checked_encryption(encryption)
    return UnopenedStore(store, lambda store: with_compression(_decided(store, encryption, clock), compress_above))


def _decided(store: Store, encryption: Encryption | None, clock: Clock | None) -> Store:
    if encryption is not None:
        return EncryptedStore(store, encryption, clock)
    with store.reading() as reader:
        return LockedStore(store) if reader.key(WHOLE_DATABASE) is not None else store


@dataclass(slots=True)
class Rekeyed:
    """What became of data keys that were to be wrapped anew."""

    rewrapped: int = 0
    current: int = 0
    """Those that were wrapped by the key that is to wrap them already, and those that were deleted meanwhile."""
    failed: dict[str, EncryptionError] = field(default_factory=dict)
    """Thread id ("" for the database) → why its data key stays as it is."""


def rekey(saver_store: Store) -> Rekeyed:
    """Wrap every data key anew that another key has wrapped than the one that is to wrap now. No other row changes.

    Page by page, each durable before the next: a call that was interrupted is repeated, and goes on where that stopped.
    """
    store = layer_of(saver_store, EncryptedStore)
    if store is None:
        if layer_of(saver_store, LockedStore) is not None:
            raise DatabaseEncryptedError()
        raise InvalidConfigError(reason="this database is not encrypted, and has no data keys", key="encryption")
    done, after = Rekeyed(), None
    while True:
        with store.reading() as reader:
            rows = reader.keys(after, PAGE)
        if not rows:
            return done
        after = rows[-1].thread_id
        changes = [(anew, row.digest) for row in rows if (anew := _anew(store, row, done)) is not None]
        if changes:
            changed = store.write_keys(KeyWrites(rewrapped=changes))
            done.rewrapped += changed
            done.current += len(changes) - changed
            points.reach(points.KEYS_REWRAPPED)


def _anew(store: EncryptedStore, row: KeyRow, done: Rekeyed) -> KeyRow | None:
    try:
        anew = store.keys.rewrapped(row)
    except EncryptionError as error:
        done.failed[row.thread_id] = error
        return None
    if anew is None:
        done.current += 1
    return anew
