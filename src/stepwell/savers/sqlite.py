"""The savers on SQLite: what users pass as `checkpointer=`. Each carries one store, which serves sync and async callers
alike.

A saver made with `SqliteSaver(path)` lives until `close()`; `from_conn_string` closes it at the end of its block,
`with` or `async with`. Use after that is a `SaverClosedError`.
"""

from __future__ import annotations

import os
from typing import Any, Self

from stepwell.errors import InvalidConfigError, UnsupportedStorageError
from stepwell.savers.keeping import KeepingSaver
from stepwell.savers.reading import OnUnknownType, hook_of
from stepwell.savers.retention.choosing import ttl_of
from stepwell.stores.encrypted.encryption import Encryption, checked_encryption
from stepwell.stores.encrypted.wrapping import with_encryption
from stepwell.stores.shared.compressing import checked_size, with_compression
from stepwell.stores.sqlite.saver import SqliteStore

MEMORY = ":memory:"
LEAST_BYTES = 1 << 18
"""What an in-memory saver may be held to: its empty tables take some of it."""


class SqliteSaver(KeepingSaver):
    """Keeps threads in one SQLite file, durable through power loss (`synchronous="full"`) unless asked for less.

    `on_unknown_type` says what becomes of a value whose type no schema and no `register_type` lists: "raise", an
    `UnknownTypeError` that names the channel; "raw", a `RawValue`; or a function of its name and stored parts.
    `ttl` (a `timedelta`, a `Ttl`) is how long `sweep()` leaves a thread alone after it was last changed.

    A file that an older release wrote is migrated as it is opened, in one transaction for each migration; with
    `migrate=False` it is refused (SchemaOutdatedError) until `stepwell migrate` has done it. A file that a newer
    release has migrated is refused either way: SchemaNewerError.

    With `encryption` nothing that a user gave or a node made can be read from the file without the keys. An encrypted
    file opened without is locked: threads can be listed, verified and deleted, all else is DatabaseEncryptedError.

    With `compress_above` what a row says and large values are stored as zstd frames where they have more bytes than
    that (`pip install 'stepwell[zstd]'` before Python 3.14, else ZstdMissingError). Reading does not ask for it.
    """

    store: SqliteStore
    """Or, of an encrypted file, what stands over one: whoever needs more than the contract's verbs looks first."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "full",
        on_unknown_type: OnUnknownType = "raise",
        migrate: bool = True,
        encryption: Encryption | None = None,
        ttl: Any = None,
        compress_above: int | None = None,
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise UnsupportedStorageError(
                f"SqliteSaver takes a path, not a {type(path).__module__}.{type(path).__qualname__}: "
                'pass the file\'s name, as in SqliteSaver("threads.db"); the saver opens its own connections.',
                reason="not a path",
            )
        above, kept_for = checked_size(compress_above), None if ttl is None else ttl_of(ttl)
        hook_of(on_unknown_type)
        checked_encryption(encryption)
        rows = SqliteStore(path, synchronous=synchronous, migrate=migrate)
        super().__init__(with_compression(with_encryption(rows, encryption), above), on_unknown_type)
        self._ttl = kept_for

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        synchronous: str = "full",
        on_unknown_type: OnUnknownType = "raise",
        migrate: bool = True,
        encryption: Encryption | None = None,
        ttl: Any = None,
        compress_above: int | None = None,
    ) -> Self:
        """Open the file for one block: `with SqliteSaver.from_conn_string("threads.db") as saver: ...`."""
        return cls(
            conn_string,
            synchronous=synchronous,
            on_unknown_type=on_unknown_type,
            migrate=migrate,
            encryption=encryption,
            ttl=ttl,
            compress_above=compress_above,
        )


class InMemorySaver(SqliteSaver):
    """The same store on ":memory:": everything but the disk. What it holds ends with the process.

    It grows with every run on it, and nothing is dropped by itself: `delete_thread` makes room. With `max_bytes` a run
    for whose writes there is none fails with StoreError, and its thread stays as it was.
    """

    def __init__(
        self,
        *,
        max_bytes: int | None = None,
        on_unknown_type: OnUnknownType = "raise",
        encryption: Encryption | None = None,
    ) -> None:
        if max_bytes is not None and (type(max_bytes) is not int or max_bytes < LEAST_BYTES):
            told = f"max_bytes is a number of bytes, at least {LEAST_BYTES}, not {max_bytes!r}"
            raise InvalidConfigError(reason=told, key="max_bytes")
        rows = with_encryption(SqliteStore(MEMORY, max_bytes=max_bytes), encryption)
        KeepingSaver.__init__(self, rows, on_unknown_type)


AsyncSqliteSaver = SqliteSaver
MemorySaver = InMemorySaver
