"""Rows on a PostgreSQL 18 of our own, on a socket, which waits for the disk: many threads at once beside LangGraph, and
a superstep beside the statement that it is. The server is the one the tests bring (`make servers`).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import psycopg
import psycopg.sql

import stepwell as api
from benchmarks.engines import Engine, fresh_config, langgraph, stepwell
from benchmarks.graphs import chain, one_more, one_more_async
from benchmarks.many import STEPS, THREADS, each_at_once
from benchmarks.measure import Row, Run, Side, Target
from stepwell.stores.postgres import sql
from stepwell.stores.postgres.session import understands_rows
from tests.stores.servers import Server, started

CHAIN = 100
STOPPED = {"recursion_limit": 1_000, "configurable": {"thread_id": "stopped"}}


def rows() -> list[Row]:
    """Return the rows. LangGraph's is left out where its saver is not installed."""
    made = []
    if find_spec("langgraph") and find_spec("langgraph.checkpoint.postgres"):
        over, under = (Side(each.__name__, THREADS * STEPS, partial(_at_once, each)) for each in (langgraph, stepwell))
        target = Target("at least", 15)
        made.append(Row("200 threads x 20 steps at once, PostgreSQL", over, under, "step", target, rounds=3))
    over, under = Side("Stepwell, invoke", CHAIN, _chain), Side("its statement alone", CHAIN, _bare)
    made.append(Row("one-task superstep vs its statement", over, under, "step", Target("at most", 1.4)))
    return made


@cache
def _server() -> Server:
    """Start the server; it stops when this process ends."""
    import atexit

    running = started(18)
    server = running.__enter__()
    atexit.register(running.__exit__, None, None, None)
    return server


@contextmanager
def _database(template: str = "template1") -> Iterator[str]:
    """Make a database for one round, empty or like another one; give how to connect to it."""
    name = f"bench_{uuid.uuid4().hex}"
    with _server().admin() as connection:
        names = map(psycopg.sql.Identifier, (name, template.rpartition("=")[2]))
        connection.execute(psycopg.sql.SQL("create database {} template {}").format(*names))
    try:
        yield _server().conninfo(name)
    finally:
        with _server().admin() as connection:
            connection.execute(psycopg.sql.SQL("drop database {} with (force)").format(psycopg.sql.Identifier(name)))


@asynccontextmanager
async def _saver(engine: Engine, conninfo: str) -> AsyncIterator[Any]:
    if engine is stepwell():
        async with api.PostgresSaver(conninfo) as saver:
            await saver.asetup()
            yield saver
        return
    pools = import_module("psycopg_pool")
    saver_of = import_module("langgraph.checkpoint.postgres.aio").AsyncPostgresSaver
    settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": psycopg.rows.dict_row}
    async with pools.AsyncConnectionPool(conninfo, min_size=4, max_size=10, kwargs=settings, open=False) as pool:
        saver = saver_of(pool)
        await saver.setup()
        yield saver


@contextmanager
def _at_once(engine: Callable[[], Engine]) -> Iterator[Run]:
    with _database() as conninfo, asyncio.Runner() as runner:
        opened = _saver(engine(), conninfo)
        saver = runner.run(opened.__aenter__())
        try:
            graph = chain(engine(), STEPS, one_more_async).compile(checkpointer=saver)
            runner.run(each_at_once(graph, 2))
            yield lambda: runner.run(each_at_once(graph, THREADS))
        finally:
            runner.run(opened.__aexit__(None, None, None))


@contextmanager
def _chain() -> Iterator[Run]:
    with _database() as conninfo, api.PostgresSaver(conninfo) as saver:
        saver.setup()
        graph = chain(stepwell(), CHAIN, one_more).compile(checkpointer=saver)
        graph.invoke({"n": 0}, fresh_config())
        yield lambda: graph.invoke({"n": 0}, fresh_config())


@contextmanager
def _bare() -> Iterator[Run]:
    """Give a run of the commits of a chain, each the statement that it was, on one connection to the same tables."""
    with _database() as origin:
        with _stopped(origin):
            pass
        with _database(template=origin) as copy:
            with _stopped(origin) as graph:
                before, commits = _recorded(graph)
            with ExitStack() as opened:
                connections: dict[int, psycopg.Connection[Any]] = {}
                for number in {statement[0] for statement in before + commits}:
                    connections[number] = opened.enter_context(psycopg.connect(copy, autocommit=True))
                    understands_rows(connections[number])
                _replay(connections, before)
                yield lambda: _replay(connections, commits)


@contextmanager
def _stopped(conninfo: str) -> Iterator[Any]:
    """Open the chain on a thread that stands before its first node; run it up to there where it has not begun."""
    with api.PostgresSaver(conninfo) as saver:
        saver.setup()
        graph = chain(stepwell(), CHAIN, one_more).compile(checkpointer=saver)
        if not graph.get_state(STOPPED).next:
            graph.invoke({"n": 0}, STOPPED, interrupt_before=["n0"])
        yield graph


Sent = tuple[int, type[psycopg.Cursor[Any]], tuple[Any, ...], dict[str, Any]]
"""A statement as it was executed: on which connection, by what cursor, with what."""


def _recorded(graph: Any) -> tuple[list[Sent], list[Sent]]:
    """Return what the rest of the thread's run executes: until its first commit of a superstep, and its commits."""
    sent: list[Sent] = []
    execute = psycopg.Cursor.execute

    def record(cursor: Any, *given: Any, **options: Any) -> Any:
        sent.append((id(cursor.connection), type(cursor), given, options))
        return execute(cursor, *given, **options)

    psycopg.Cursor.execute = record  # type: ignore[method-assign, assignment]
    try:
        graph.invoke(None, STOPPED)
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]
    texts = [given[0] for _, _, given, _ in sent]
    first = texts.index(texts[-1])
    assert set(texts[first:]) == {texts[-1]}
    return sent[:first], sent[first:]


def _replay(connections: dict[int, psycopg.Connection[Any]], statements: list[Sent]) -> None:
    for number, kind, given, options in statements:
        connection = connections[number]
        if str(given[0]).startswith((sql.BEGIN, sql.BEGIN_READ, sql.query("admit"))):
            connection.rollback()  # a snapshot ends without a statement
        cursor = kind(connection)
        cursor.execute(*given, **options)
        if cursor.description is not None:
            cursor.fetchall()
