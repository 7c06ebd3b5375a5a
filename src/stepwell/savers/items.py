"""The public item stores: what users pass as `store=`. All are the same code, on a file, in memory or elsewhere.

A `SqliteStore` on the saver's file, or made from the saver, lets what nodes write commit with their outcomes.
"""

from __future__ import annotations

import os
from typing import Any, Self

from stepwell.clock import Clock, SystemClock
from stepwell.errors import InvalidConfigError, InvalidItemError, UnsupportedStorageError
from stepwell.items import ItemTable, TTLConfig
from stepwell.savers.lifetime import Closable
from stepwell.savers.reading import ReadingSaver
from stepwell.store import Store
from stepwell.stores.encrypted.encryption import Encryption, checked_encryption
from stepwell.stores.encrypted.wrapping import with_encryption
from stepwell.stores.sqlite.connection import MEMORY
from stepwell.stores.sqlite.saver import SqliteStore as Database


def refuse_index(index: object) -> None:
    """Raise for what would be searched by meaning."""
    if index is not None:
        raise InvalidItemError(reason="index= needs search by meaning, which there is not; leave it out")


class OpenedItems(Closable, ItemTable):
    """An item store on rows of its own, which it closes, or on those of a saver, which it leaves open."""

    def __init__(self, rows: Store, ttl: TTLConfig | None, clock: Clock | None, *, shared: bool) -> None:
        self._shared = shared
        super().__init__(rows, clock or SystemClock(), ttl)

    def _release(self) -> None:
        """Close the database; one that is a saver's stays open."""
        if not self._shared:
            self.rows.close()


class SqliteStore(OpenedItems):
    """Keeps items in one SQLite file: beside the threads of a saver on that file, or in one of its own.

    Give it a path, or the saver itself, whose connections it then shares. `ttl`: `{"default_ttl": minutes,
    "refresh_on_read": bool}` for items put without `ttl=` and reads that do not say. `index=` is refused: nothing here
    searches by meaning. `encryption` is that of `SqliteSaver`: values cannot be read without the keys, namespaces and
    keys of items can.
    """

    def __init__(
        self,
        place: str | os.PathLike[str] | ReadingSaver,
        *,
        ttl: TTLConfig | None = None,
        index: None = None,
        synchronous: str = "full",
        clock: Clock | None = None,
        encryption: Encryption | None = None,
    ) -> None:
        refuse_index(index)
        if not isinstance(place, str | os.PathLike | ReadingSaver):
            given = f"{type(place).__module__}.{type(place).__qualname__}"
            raise UnsupportedStorageError(
                f'SqliteStore takes a path or a saver, not a {given}: pass SqliteStore("threads.db").', reason="no path"
            )
        if not isinstance(place, ReadingSaver):
            checked_encryption(encryption)
            rows = with_encryption(Database(place, synchronous=synchronous), encryption)
            super().__init__(rows, ttl, clock, shared=False)
        elif encryption is None:
            super().__init__(place.store, ttl, clock, shared=True)
        else:
            raise InvalidConfigError(reason="the item store has its saver's encryption: leave it out", key="encryption")

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, ttl: TTLConfig | None = None, index: None = None, **options: Any
    ) -> Self:
        """Open the file for one block: `with SqliteStore.from_conn_string("items.db") as store: ...`."""
        return cls(conn_string, ttl=ttl, index=index, **options)


class InMemoryStore(SqliteStore):
    """The same store on ":memory:": everything but the disk. What it holds ends with the process."""

    def __init__(self, *, ttl: TTLConfig | None = None, index: None = None, clock: Clock | None = None) -> None:
        super().__init__(MEMORY, ttl=ttl, index=index, clock=clock)


AsyncSqliteStore = SqliteStore
