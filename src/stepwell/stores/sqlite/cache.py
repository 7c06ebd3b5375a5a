"""Caches on SQLite: `SqliteCache` in a file of its own, `InMemoryCache` in memory. One body for both.

A cache may lose anything at any time, so nothing here waits for the disk; what has expired is dropped when something is
kept. One connection behind one lock; a forked child opens its own.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Self

import apsw

from stepwell.clock import Clock, SystemClock
from stepwell.errors import UnsupportedStorageError
from stepwell.store.cache import CacheKey
from stepwell.stores.sqlite.connection import BUSY_TIMEOUT_MS, MEMORY
from stepwell.stores.sqlite.schema import APPLICATION_ID
from stepwell.stores.sqlite.sql import query
from stepwell.stores.sqlite.storage import check_place

CACHE_APPLICATION_ID = 1400139896
SCHEMA = ("cache_create", "cache_index")


class SqliteCache:
    """Keeps results in one SQLite file, which any number of processes may share. Not the file of a saver.

    Raises UnsupportedStorageError for a file it cannot use. `close()` it when done, or use it in a `with` block.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Clock | None = None) -> None:
        self._path = os.fspath(path)
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._connection = self._open()

    @property
    def blocking(self) -> bool:
        return self._path != MEMORY

    def get(self, key: CacheKey) -> bytes | None:
        rows = self._execute("cache_find", **key._asdict(), now=self._clock.now())
        return rows[0][0] if rows else None

    def set(self, key: CacheKey, value: bytes, ttl: float | None) -> None:
        now = self._clock.now()
        self._execute("cache_expire", now=now)
        expires_at = None if ttl is None else now + int(ttl * 1e6)
        self._execute("cache_keep", **key._asdict(), value=value, expires_at=expires_at)

    def clear(self, graph_id: str | None = None, callee: str | None = None) -> None:
        self._execute("cache_clear", graph_id=graph_id, callee=callee)

    def close(self) -> None:
        """Close the file. What runs then goes on without a cache, and says so in the log."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _execute(self, name: str, **values: Any) -> list[Any]:
        with self._lock:
            if self._opened_by != os.getpid():
                self._connection = self._open()
            return self._connection.execute(query(name), values).fetchall()

    def _open(self) -> apsw.Connection:
        self._opened_by = os.getpid()
        if self._path != MEMORY:
            check_place(self._path)
        try:
            connection = apsw.Connection(self._path)
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            if connection.pragma("application_id") == APPLICATION_ID:
                raise UnsupportedStorageError(f"{self._path!r} holds threads: give the cache a file of its own.")
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "normal")
            connection.pragma("application_id", CACHE_APPLICATION_ID)
            for name in SCHEMA:
                connection.execute(query(name))
        except apsw.Error as error:
            raise UnsupportedStorageError(f"Cannot keep a cache in {self._path!r}: {error}") from error
        return connection


class InMemoryCache(SqliteCache):
    """Keeps results in memory, for as long as it lives."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        super().__init__(MEMORY, clock=clock)
