"""Connections of the store's own: a few, and more only where those few are not enough.

A new connection costs a server as much as a hundred commits, and more of them than a process can use make it slower. So
beyond `min_size` one is opened only while all others are in use, and not many at a time; what stays unused for a while
is closed. Who waits is served in the order in which it came. After `os.fork` the child leaves the parent's connections
alone and opens its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from queue import Empty, SimpleQueue

import psycopg
from psycopg.pq import TransactionStatus

from stepwell.errors import StoreError, UnsupportedStorageError
from stepwell.stores.postgres import MAX_SIZE, MIN_SIZE
from stepwell.stores.postgres.connections import Connection, checked, connect

WAIT_SECONDS = 30.0
GROWTH_SECONDS = 0.05
"""From one connection beyond `min_size` to the next."""
IDLE_SECONDS = 30.0
"""How long one of those may go unused."""


class OwnConnections:
    """Connections to one conninfo: up to `max_size`, of which `min_size` stay open when nobody needs them."""

    def __init__(self, conninfo: str, *, min_size: int | None = None, max_size: int = MAX_SIZE) -> None:
        if min_size is None:
            min_size = min(MIN_SIZE, max_size) if type(max_size) is int else MIN_SIZE
        if not type(min_size) is type(max_size) is int or not 0 <= min_size <= max_size or max_size < 1:
            given = f"min_size={min_size!r}, max_size={max_size!r}"
            raise UnsupportedStorageError(f"A pool has 0 <= min_size <= max_size and max_size >= 1, not {given}.")
        self._conninfo, self.where = checked(conninfo)
        self._min_size, self._max_size = min_size, max_size
        self._closed = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._free: list[Connection] = []
        self._unused = 0
        """So many of the free ones nobody has taken since somebody last looked."""
        self._open = 0
        """Those that are open, or being opened."""
        self._grown_at = float("-inf")
        self._waiting: deque[SimpleQueue[Connection | None]] = deque()
        """Each is given a connection or, by None, leave to open one."""
        self._timer: threading.Timer | None = None

    def take(self) -> Connection:
        """Return a free connection, or open one."""
        if self._pid != os.getpid():
            self._parents = self._free  # kept, never closed: they are the parent's
            self._begin_anew()
        connection = self._taken()
        if connection is not None:
            return connection
        try:
            return connect(self._conninfo, self.where)
        except BaseException:
            with self._lock:
                self._leave()
            raise

    def give_back(self, connection: Connection) -> None:
        """Keep the connection for the next, if it is sound and wanted."""
        try:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.rollback()
        except psycopg.Error:
            connection.close()
        if self._closed:
            connection.close()
        with self._lock:
            if connection.closed:
                self._leave()
            elif self._waiting:
                self._waiting.popleft().put(connection)
            else:
                self._free.append(connection)
                self._watch()

    def forget_idle(self) -> None:
        """Close what nobody has."""
        with self._lock:
            idle, self._free, self._unused = self._free, [], 0
            self._open -= len(idle)
        for connection in idle:
            connection.close()

    def close_unused(self) -> None:
        """Close what nobody has needed since this was last called, down to `min_size`."""
        with self._lock:
            surplus = max(0, min(self._unused, self._open - self._min_size))
            unused, self._free = self._free[:surplus], self._free[surplus:]
            self._open -= surplus
            self._unused, self._timer = len(self._free), None
            self._watch()
        for connection in unused:
            connection.close()

    def close(self) -> None:
        """Close what nobody has, and keep nothing that is given back."""
        self._closed = True
        if self._pid == os.getpid():
            self.forget_idle()
            if (timer := self._timer) is not None:
                timer.cancel()

    def _taken(self) -> Connection | None:
        """Return a connection that was free, or was given back; None where one is to be opened."""
        begun = time.monotonic()
        with self._lock:
            while self._free:
                connection = self._free.pop()
                self._unused = min(self._unused, len(self._free))
                if not connection.closed:
                    return connection
                self._open -= 1
            if self._may_open(begun):
                self._open += 1
                return None
            turn: SimpleQueue[Connection | None] = SimpleQueue()
            self._waiting.append(turn)
            patience = GROWTH_SECONDS * (1 + len(self._waiting) // MIN_SIZE)  # who comes later looks more rarely
        while True:
            try:
                return turn.get(timeout=min(patience, WAIT_SECONDS))
            except Empty:
                with self._lock:
                    if turn not in self._waiting:
                        return turn.get()  # given at the last moment
                    now = time.monotonic()
                    if self._may_open(now):
                        self._waiting.remove(turn)
                        self._open += 1
                        return None
                    if now - begun >= WAIT_SECONDS:
                        self._waiting.remove(turn)
                        raise self._exhausted() from None

    # -- with the lock held -------------------------------------------------------------------------------------------

    def _may_open(self, now: float) -> bool:
        if self._open < self._min_size or self._open == 0:
            return True
        if self._open >= self._max_size or now - self._grown_at < GROWTH_SECONDS:
            return False
        self._grown_at = now
        return True

    def _leave(self) -> None:
        """One connection less: the first who waits may open another."""
        if self._waiting:
            self._waiting.popleft().put(None)
        else:
            self._open -= 1

    def _watch(self) -> None:
        """See to it that somebody looks for unused connections, as long as there may be any."""
        if self._timer is None and self._open > self._min_size and not self._closed:
            self._timer = threading.Timer(IDLE_SECONDS, self.close_unused)
            self._timer.daemon = True
            self._timer.start()

    def _exhausted(self) -> StoreError:
        return StoreError(
            f"All {self._max_size} connections to {self.where} are in use for {WAIT_SECONDS:.0f} s. Raise"
            " max_size, or close iterators that were left half read."
        )
