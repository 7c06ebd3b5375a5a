"""Rows that ask what the engine adds to its database: a durable run against a bare loop of the same statements.

The statements, with their values, are recorded from the store's own writing connection during one run; the bare loop
then runs them on a new file with the same pragmas. Both sync fully.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import apsw

from benchmarks.drive import Api, on_sqlite, ready
from benchmarks.engines import folder, stepwell
from benchmarks.graphs import chain, one_more, one_more_async
from benchmarks.measure import Row, Run, Side, Target

STEPS = 100
BEGIN_WRITE = "begin immediate"
Statement = tuple[str, Any]
Work = Callable[[], AbstractContextManager[Run]]


def rows() -> list[Row]:
    """Return the rows."""
    return [
        Row("SQLite sync, invoke vs bare loop", _durable("invoke"), _bare(), "step", Target("at most", 1.3)),
        Row("SQLite sync, ainvoke vs bare loop", _durable("ainvoke"), _bare(), "step", Target("at most", 1.8)),
    ]


def _durable(api: Api) -> Side:
    return Side(f"Stepwell, {api}", STEPS, lambda: _ready(api))


def _bare() -> Side:
    return Side("bare loop of its statements", STEPS, lambda: bare_loop(_chain_by_invoke))


def _chain_by_invoke() -> Any:
    return _ready("invoke")


def _ready(api: Api) -> Any:
    node = one_more if api == "invoke" else one_more_async
    start = {"n": 0}
    return ready(stepwell(), lambda e: chain(e, STEPS, node), on_sqlite, api, start, start, {"durability": "sync"})


@contextmanager
def bare_loop(work: Work) -> Iterator[Run]:
    """Give a run of the statements that the store's writer executes in `work`, on a new file with the same pragmas."""
    before, measured = _recorded(work)
    with folder() as path:
        connection = apsw.Connection(str(path / "bare.db"))
        try:
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "full")
            connection.wal_autocheckpoint(1000)
            _execute(connection, before)
            yield lambda: _execute(connection, measured)
        finally:
            connection.close()


def _execute(connection: apsw.Connection, statements: list[Statement]) -> None:
    execute = connection.cursor().execute
    for text, values in statements:
        execute(text, values).fetchall()


@cache
def _recorded(work: Work) -> tuple[list[Statement], list[Statement]]:
    """Return what the store's writer executes up to the measured run, and in it."""
    written: dict[int, list[Statement]] = {}

    def record(cursor: apsw.Cursor, text: str, values: Any) -> bool:
        written.setdefault(id(cursor.connection), []).append(
            (text, dict(values) if isinstance(values, dict) else values)
        )
        return True

    def watch(connection: apsw.Connection) -> None:
        connection.exec_trace = record

    apsw.connection_hooks.append(watch)
    try:
        with work() as run:
            marks = {connection: len(statements) for connection, statements in written.items()}
            run()
            key = _writer(written, marks)
            return _without_pragmas(written[key][: marks[key]]), written[key][marks[key] :]
    finally:
        apsw.connection_hooks.remove(watch)


def _writer(written: dict[int, list[Statement]], marks: dict[int, int]) -> int:
    """Return the connection that wrote most during the run: its one writer."""
    return max(marks, key=lambda key: sum(text == BEGIN_WRITE for text, _ in written[key][marks[key] :]))


def _without_pragmas(statements: list[Statement]) -> list[Statement]:
    return [(text, values) for text, values in statements if not text.lstrip().lower().startswith("pragma journal")]
