"""Where connections come from: the pool that a user has, or a small one of the store's own (`pool.py`).

A connection is taken for one transaction and given back; none is held while a node runs. Every statement stands alone
(autocommit, nothing prepared, nothing set for the session), so that a pooler may hand each transaction to another
server process. After `os.fork` the child leaves the parent's connections alone and opens its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from stepwell.errors import UnsupportedStorageError
from stepwell.stores.postgres.damage import unavailable

Connection = psycopg.Connection[tuple[Any, ...]]
_NAMED = ("host", "hostaddr", "port", "dbname", "service")
"""What of a connection string is shown."""


class Connections(Protocol):
    """Hands out connections, each to one thread at a time."""

    where: str
    """The database, as errors name it: without user and password."""

    def take(self) -> Connection:
        """Return a connection that nobody else has. Raises DatabaseUnavailableError where there is none to be had."""
        ...

    def give_back(self, connection: Connection) -> None:
        """Take a connection back, whatever its state; an open transaction is undone."""
        ...

    def forget_idle(self) -> None:
        """Close what nobody has: the server may be another one by now."""
        ...

    def close(self) -> None:
        """Close what nobody has now, and everything else when it is given back."""
        ...


@contextmanager
def lent(connections: Connections) -> Iterator[Connection]:
    """Lend a connection for one block."""
    connection = connections.take()
    try:
        yield connection
    finally:
        connections.give_back(connection)


class UserConnections:
    """The pool of a user: what has `getconn` and `putconn`, as `psycopg_pool.ConnectionPool` does. It stays open."""

    def __init__(self, pool: Any) -> None:
        get, put = getattr(pool, "getconn", None), getattr(pool, "putconn", None)
        if not callable(get) or not callable(put) or inspect.iscoroutinefunction(get):
            given = f"{type(pool).__module__}.{type(pool).__qualname__}"
            raise UnsupportedStorageError(
                f"pool= takes a psycopg_pool.ConnectionPool, not a {given}: it serves sync and async callers alike."
            )
        self._get: Callable[[], Any] = get
        self._put: Callable[[Any], None] = put
        self._pool = pool
        self._as_found: dict[int, bool] = {}
        """By connection, whether its statements stood alone before it was taken."""
        self.where = "the database of pool="

    def take(self) -> Connection:
        """Return one of the pool's connections, each statement a transaction."""
        try:
            connection: Connection = self._get()
        except psycopg.Error as error:
            raise unavailable(error, self.where) from error
        try:
            _check(connection, self.where)
            self._as_found[id(connection)] = connection.autocommit
            connection.autocommit = True
        except BaseException:
            self._put(connection)
            raise
        return connection

    def give_back(self, connection: Connection) -> None:
        """Return it to its pool as it was found."""
        as_found = self._as_found.pop(id(connection))
        try:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                connection.rollback()
            connection.autocommit = as_found
        except psycopg.Error:
            connection.close()
        self._put(connection)

    def forget_idle(self) -> None:
        """Let the pool look at what it holds."""
        check = getattr(self._pool, "check", None)
        if callable(check):
            check()

    def close(self) -> None:
        """Do nothing: the pool is the user's."""


def connect(conninfo: str, where: str) -> Connection:
    """Open a connection of the store's own."""
    try:
        connection = psycopg.connect(conninfo, autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        raise unavailable(error, where) from error
    try:
        _check(connection, where)
    except BaseException:
        connection.close()
        raise
    return connection


def shown(conninfo: str) -> str:
    """Return what of a connection string may be shown: where the database is, never who asks for it."""
    return checked(conninfo)[1]


def checked(conninfo: str) -> tuple[str, str]:
    """Return a connection string with what every connection needs, and what of it may be shown."""
    try:
        given = conninfo_to_dict(conninfo)
    except psycopg.Error:  # its text repeats the string, password and all
        raise UnsupportedStorageError(
            "The connection string cannot be read: write postgresql://user@host:5432/database, or host=... dbname=..."
        ) from None
    parts = " ".join(f"{name}={given[name]}" for name in _NAMED if given.get(name))
    settings = {"client_encoding": "utf8", "fallback_application_name": "stepwell"}
    return make_conninfo(conninfo, **settings), f"PostgreSQL ({parts or 'defaults'})"


def _check(connection: Connection, where: str) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in ("UTF8", None) or connection.info.encoding != "utf-8":
        raise UnsupportedStorageError(
            f"{where} has the encoding {encoding}, read as {connection.info.encoding}; texts are kept in UTF8. Create"
            " the database with encoding 'UTF8'."
        )
