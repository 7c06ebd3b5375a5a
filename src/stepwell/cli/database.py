"""Opening the database: for commands that read it, and under a graph that a command drives.

The rule: only a run makes a database, and a graph that brings its own checkpointer keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stepwell.cli.absent import unknown_checkpoint, unknown_thread
from stepwell.cli.faults import UnknownDatabaseError
from stepwell.cli.keys import encryption_of
from stepwell.cli.screen import say
from stepwell.cli.settings import Settings
from stepwell.errors import CorruptRecordError, UnknownThreadError, UsageError
from stepwell.savers.keeping import KeepingSaver
from stepwell.savers.places import SCHEMA, is_absent, is_server
from stepwell.savers.sqlite import MEMORY, SqliteSaver
from stepwell.stores.encrypted.encryption import Encryption

if TYPE_CHECKING:
    from stepwell.engine import CompiledGraph
    from stepwell.store import Reader, Store, ThreadRow


@contextmanager
def reading(settings: Settings) -> Iterator[Reader]:
    """Open one snapshot of a database that is there."""
    with opened(settings) as saver, saver.store.reading() as reader:
        yield reader


@contextmanager
def opened(settings: Settings, *, create: bool = False) -> Iterator[KeepingSaver]:
    """Open a database that is there, or may be made. No command but `migrate` changes its schema."""
    schema = checked_schema(settings)
    if not create and (settings.path == MEMORY or is_absent(settings.path)):
        raise UnknownDatabaseError(path=settings.path)
    keys = encryption_of(settings)
    with _open_file(settings.path, keys) if schema is None else _open_server(settings, schema, create, keys) as saver:
        yield saver


def checked_schema(settings: Settings) -> str | None:
    """Return the schema of a database on a server; None for a file, which has none."""
    if is_server(settings.path):
        return SCHEMA if settings.schema is None else settings.schema
    if settings.schema is not None:
        raise UsageError("--schema names a schema of a PostgreSQL database; a file has none: leave it out.")
    return None


def _open_file(path: str, encryption: Encryption | None) -> KeepingSaver:
    return SqliteSaver(path, migrate=False, encryption=encryption)


def _open_server(settings: Settings, schema: str, create: bool, encryption: Encryption | None) -> KeepingSaver:
    from stepwell.savers.postgres import PostgresSaver

    with driver_told():
        saver = PostgresSaver(settings.path, schema=schema, encryption=encryption)
    try:
        if create and saver.read_schema().found == 0:
            saver.setup()
    except BaseException:
        saver.close()
        raise
    return saver


@contextmanager
def driver_told() -> Iterator[None]:
    """Say of a driver that is not installed what the call needs: it is no fault of Stepwell."""
    try:
        yield
    except ImportError as error:
        raise UsageError(str(error)) from error


def thread_row(reader: Reader, thread_id: str, checkpoint_id: str | None = None) -> ThreadRow:
    """Return the thread's row; where a checkpoint is named, it is there."""
    row = reader.thread(thread_id)
    if row is None:
        raise unknown_thread(reader, thread_id)
    if checkpoint_id is not None and reader.seq_of(thread_id, "", checkpoint_id) is None:
        raise unknown_checkpoint(reader, thread_id, checkpoint_id)
    return row


def require_thread(reader: Reader, thread_id: str) -> None:
    """Raise where there is no such thread; one whose row is damaged is there."""
    try:
        thread_row(reader, thread_id)
    except CorruptRecordError:
        pass
    except UnknownThreadError:
        if not reader.faults(thread_id):
            raise


@contextmanager
def durable(graph: Any, settings: Settings, *, create: bool = True, events: bool = False) -> Iterator[CompiledGraph]:
    """Lend the graph a database for one command, unless it has one of its own. With `events` its run keeps a log."""
    if getattr(graph, "checkpointer", None):
        if settings.db is not None:
            raise UsageError("This graph was compiled with a checkpointer of its own: leave --db out.")
        if events and not graph.events:
            raise UsageError("This graph was compiled with a checkpointer of its own: compile it with events=True.")
        _say_where_it_ends(graph)
        yield graph
        return
    with opened(settings, create=create) as saver:
        bound = _bind(graph, saver, events)
        _say_where_it_ends(bound)
        yield bound


def store_of(graph: CompiledGraph) -> Store:
    """Return the store under a graph that has a checkpointer."""
    store: Store = graph.checkpointer.store
    return store


def _bind(graph: Any, saver: KeepingSaver, events: bool) -> CompiledGraph:
    from stepwell.engine import CompiledGraph

    if not isinstance(graph, CompiledGraph):
        compiled: CompiledGraph = graph.compile(checkpointer=saver, events=events)
        return compiled
    return CompiledGraph(
        graph.builder,
        graph.plan,
        checkpointer=saver,
        store=graph.store,
        cache=graph.cache,
        debug=graph.debug,
        name=graph.name,
        config=graph._config,
        listeners=graph.listeners,
        events=events,
    )


def _say_where_it_ends(graph: CompiledGraph) -> None:
    if not getattr(graph.checkpointer.store, "blocking", True):
        say("This graph keeps its threads in memory: they end with this command.")
