"""Keys, a graph with a thread, and a database whose rows can be altered behind the saver's back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from stepwell import Encryption, SqliteSaver
from stepwell.savers.keeping import KeepingSaver
from stepwell.store import digest_of
from stepwell.stores.encrypted.store import EncryptedStore
from stepwell.stores.shared import rows
from tests.runtime.graphs import ask, chain, note, thread


@pytest.fixture
def key() -> bytes:
    return Encryption.new_key()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


def opened(path: Path, key: bytes, **options: Any) -> SqliteSaver:
    """Open the database with one key."""
    return SqliteSaver(path, encryption=Encryption({"k": key}, **options))


def encrypted(saver: SqliteSaver) -> EncryptedStore:
    """Return the store of a saver that encrypts."""
    store: Any = saver.store
    assert isinstance(store, EncryptedStore)
    return store


def talk(saver: KeepingSaver) -> Any:
    """Return a graph with a question in its midst."""
    return chain(("a", note("a")), ("q", ask("q")), ("b", note("b"))).compile(
        checkpointer=saver, name="talk", events=True
    )


def begin(saver: KeepingSaver, *thread_ids: str) -> Any:
    """Begin threads, each up to its question."""
    graph = talk(saver)
    for thread_id in thread_ids:
        graph.invoke({"log": [f"in {thread_id}"]}, thread(thread_id, metadata={"owner": f"of {thread_id}"}))
    return graph


@contextmanager
def behind(path: Path) -> Iterator[apsw.Connection]:
    """Write to the database as somebody does who has the file and no key."""
    connection = apsw.Connection(str(path))
    try:
        yield connection
    finally:
        connection.close()


def mend(connection: apsw.Connection) -> None:
    """Give every row the digest it ought to have, and every thread the head: digests are no secret."""
    for table in (
        rows.CHECKPOINTS,
        rows.RECORDS,
        rows.RUNS,
        rows.EVENTS,
        rows.INBOX,
        rows.EFFECTS,
        rows.ITEMS,
        rows.KEYS,
    ):
        for *columns, digest in connection.execute(f"select * from {table.name}").fetchall():
            sealed = digest_of(table.tag, columns)
            connection.execute(f"update {table.name} set digest = ? where digest = ?", (sealed, digest))
    connection.execute(
        """update threads set head_digest = coalesce(
             (select digest from records where thread_id = threads.thread_id and seq = head_seq),
             (select digest from checkpoints where thread_id = threads.thread_id and seq = head_seq), head_digest)"""
    )
    for *columns, digest in connection.execute("select * from threads").fetchall():
        sealed = digest_of(rows.THREADS.tag, columns)
        connection.execute("update threads set digest = ? where digest = ?", (sealed, digest))
