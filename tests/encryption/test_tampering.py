"""INV-10 beyond accidents: somebody who can write to the database and knows its formats and digests, but no key: what
each try ends in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepwell import (
    LostKeyError,
    PlaintextRecordError,
    SqliteSaver,
    SqliteStore,
    StepwellError,
    TamperedRecordError,
    WrongKeyError,
)
from stepwell.store import EffectsQuery
from stepwell.stores.encrypted.sealer import opened_blob, opened_event
from stepwell.stores.shared import rows
from tests.encryption.conftest import begin, behind, encrypted, mend, opened, talk
from tests.encryption.life import live
from tests.runtime.graphs import thread


def altered(path: Path, statement: str, *values: Any) -> None:
    with behind(path) as connection:
        connection.execute(statement, values)
        mend(connection)


def read_all(saver: SqliteSaver, *thread_ids: str) -> None:
    """Read every row of these threads, and what belongs to none."""
    with saver.store.reading() as reader:
        reader.effects(EffectsQuery())
        list(reader.items("", 0))
        for thread_id in thread_ids:
            reader.everything(thread_id)
            reader.blobs(thread_id)
            reader.inbox(thread_id)
            for run in reader.runs(thread_id):
                reader.events(run.run_id)


@pytest.fixture
def database(path: Path, key: bytes) -> Path:
    """A database with two threads that are as like as they can be."""
    with opened(path, key) as saver:
        graph = begin(saver, "t", "u")
        for thread_id in ("t", "u"):
            graph.signal(thread(thread_id), "k", "v", id="s")
    return path


def test_R1_a_plaintext_row_put_in_place_of_an_encrypted_one_is_refused(
    database: Path, key: bytes, tmp_path: Path
) -> None:
    """langgraph's issue 8938: an encrypted serializer took plaintext rows, so whoever wrote to the database could forge
    state. Here every table refuses them, whatever their digests say."""
    with SqliteSaver(tmp_path / "plain.db") as plain:
        begin(plain, "t", "u").signal(thread("t"), "k", "v", id="s")
    with behind(tmp_path / "plain.db") as other:
        forged = {
            table: other.execute(f"select {column} from {table} where thread_id = 't'").fetchall()[0][0]
            for table, column in BODIES.items()
        }
    for table, column in BODIES.items():
        copy = tmp_path / f"{table}.db"
        copy.write_bytes(database.read_bytes())
        altered(copy, f"update {table} set {column} = ? where thread_id = 't'", forged[table])
        with opened(copy, key) as saver, pytest.raises(PlaintextRecordError, match=table):
            read_all(saver, "t")


BODIES = {"checkpoints": "body", "records": "body", "runs": "input", "events": "body", "inbox": "body"}


def test_R2_a_row_moved_to_another_thread_or_place_does_not_open(database: Path, key: bytes, tmp_path: Path) -> None:
    """langgraph's issue 9004: a tag that is bound to nothing lets a valid row be moved or put back. Here it is bound to
    every column that tells its row apart, and to its parent."""
    moves = {
        f"{table} of another thread": f"update {table} set {column} = (select {column} from {table} as other "
        f"where other.thread_id = 'u' limit 1) where thread_id = 't'"
        for table, column in BODIES.items()
    }
    moves["an old checkpoint in place of the newest"] = (
        "update checkpoints set body = (select body from checkpoints where thread_id = 't' order by seq limit 1)"
        " where thread_id = 't'"
    )
    moves["an event in place of another"] = (
        "update events set body = (select body from events where thread_id = 't' order by ordinal limit 1)"
    )
    for number, (name, statement) in enumerate(moves.items()):
        copy = tmp_path / f"{number}.db"
        copy.write_bytes(database.read_bytes())
        altered(copy, statement)
        with opened(copy, key) as saver, pytest.raises(TamperedRecordError):
            read_all(saver, "t")
            pytest.fail(name)


FREE = {
    "runs": {"epoch", "events"},  # the store fills them in
    "events": {"ordinal", "previous_digest"},
    "inbox": {"ordinal", "content", "consumed_seq", "key"},
    "effects": {"call_id", "fingerprint"},  # their true values are in the body
    "items": {"ordinal", "created_at", "updated_at", "ttl", "expires_at"},
    "checkpoints": {"metadata"},
    "records": set(),
    "blobs": set(),
}


def test_R2_every_column_that_is_shown_and_never_changes_is_bound(tmp_path: Path, key: bytes) -> None:
    """Whichever of them is altered, the row does not open any more. The others are listed here, and in the docs."""
    path = tmp_path / "threads.db"
    with opened(path, key) as saver, SqliteStore(saver) as items:
        live(saver, items, "sync")
    with opened(path, key) as saver:
        stores = saver.store
        for table, free in FREE.items():
            with behind(path) as connection:
                found = connection.execute(f"select * from {table} where {_is_encrypted(table)} limit 1")
                names = [column[0] for column in found.description]
                columns = dict(zip(names, found.fetchall()[0], strict=True))
            row = _row(table, columns)
            open_row = _opener(stores, table)
            open_row(row)
            for name in names:
                if (
                    name in free | {"digest", "body", "input", "value", "input_digest", "error"}
                    or name not in row._fields
                ):
                    continue
                with pytest.raises(StepwellError) as caught:
                    open_row(row._replace(**{name: _other(columns[name])}))
                    pytest.fail(f"{table}.{name} is not bound")
                assert isinstance(caught.value, TamperedRecordError | LostKeyError)


CARRIES = {"digest", "body", "input", "value", "input_digest", "error"}


def _is_encrypted(table: str) -> str:
    column = {"runs": "input", "items": "value"}.get(table, "body")
    return f"substr({column}, 1, 1) = x'c1'"


def _row(table: str, columns: dict[str, Any]) -> Any:
    made: Any = getattr(rows, table.upper()).make(list(columns.values()))
    return made


def _opener(store: Any, table: str) -> Callable[[Any], Any]:
    names = {
        "checkpoints": "_open_checkpoint",
        "records": "_record",
        "effects": "_effect",
        "runs": "_run",
        "items": "_item",
    }

    def open_row(row: Any) -> Any:
        with store.reading() as reader:
            if table in OPENED:
                return reader._opened(table, row.thread_id, "?", row.body, OPENED[table], row)
            return reader.opened_message(row) if table == "inbox" else getattr(reader, names[table])(row)

    return open_row


OPENED: dict[str, Any] = {"events": opened_event, "blobs": opened_blob}


def _other(value: Any) -> Any:
    if value is None:
        return 1
    return value + (1 if isinstance(value, int) else b"x" if isinstance(value, bytes) else "x")


def test_a_body_with_any_byte_altered_or_missing_does_not_open(database: Path, key: bytes) -> None:
    with opened(database, key) as saver, encrypted(saver).reading() as reader:
        with encrypted(saver).inner.reading() as stored:
            row = stored.newest("t", "")
        assert row is not None
        for at in range(len(row.body)):
            flipped = bytearray(row.body)
            flipped[at] ^= 1
            for body in (bytes(flipped), row.body[:at]):
                with pytest.raises((TamperedRecordError, PlaintextRecordError)):
                    reader._open_checkpoint(row._replace(body=body))


def test_the_data_keys_of_two_threads_cannot_be_exchanged(database: Path, key: bytes) -> None:
    swap = "update keys set (name, key_id, wrapped) = (select name, key_id, wrapped from keys where thread_id = 'u')"
    altered(database, f"{swap} where thread_id = 't'")
    with opened(database, key) as saver:
        with pytest.raises(WrongKeyError, match="thread 't'"):
            read_all(saver, "t")
        assert talk(saver).get_state(thread("u")).values == {"log": ["in u", "a"]}, "a corrupt thread harms no other"


def test_a_lost_data_key_is_said_and_seen_by_verify_without_a_key(database: Path, key: bytes) -> None:
    altered(database, "delete from keys where thread_id = 't'")
    with opened(database, key) as saver, pytest.raises(LostKeyError, match="data key is missing"):
        talk(saver).get_state(thread("t"))
    with SqliteSaver(database) as locked:
        (fault,) = locked.store.verify()
    assert "data key is missing" in fault


def test_verify_with_a_key_finds_what_verify_without_one_cannot(database: Path, key: bytes) -> None:
    """An alteration whose author made every digest right again."""
    altered(database, "update records set kind = 'failed' where thread_id = 't'")
    with SqliteSaver(database) as locked:
        assert list(locked.store.verify()) == []
    with opened(database, key) as saver:
        (fault,) = saver.store.verify()
    assert "does not authenticate" in fault


def test_what_is_not_found_is_said_here(database: Path, key: bytes) -> None:
    """The end of a thread cut off, with its head set back, is not found: nothing outside the database says how far it
    had come. Docs say so."""
    with behind(database) as connection:
        connection.execute(CUT)
        connection.execute("update threads set head_seq = (select max(seq) from checkpoints where thread_id = 't')")
        mend(connection)
    with opened(database, key) as saver:
        assert talk(saver).get_state(thread("t")).next == ("q",)


CUT = "delete from records where thread_id = 't' and seq = (select max(seq) from records where thread_id = 't')"
