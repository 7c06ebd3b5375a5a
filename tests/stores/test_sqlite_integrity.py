"""INV-10: a bit that flips in any column of any row is found, and so is a row that is gone."""

import struct
from collections.abc import Iterator
from typing import Any

import apsw
import pytest

from stepwell.errors import CorruptRecordError
from stepwell.ids import fingerprint_of
from stepwell.store import EffectsQuery, HistoryQuery, ShapeRow, ThreadRow, ThreadsQuery, digest_of
from stepwell.stores.shared.rows import thread_digest
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started
from stepwell.testing.store_suite.effects import saying
from stepwell.testing.store_suite.events import telling
from stepwell.testing.store_suite.inbox import message

TABLES = {
    "threads": "thread_id",
    "runs": "run_id",
    "checkpoints": "seq",
    "records": "seq",
    "events": "ordinal",
    "inbox": "message_id",
    "effects": "key",
}
ROWS = {"threads": 1, "runs": 1, "checkpoints": 2, "records": 3, "events": 2, "inbox": 2, "effects": 1}
READ_EACH = 7
"""Reading is tried on each seventh flip; `test_sqlite_damage.py` reads after all of them."""


def small_thread(store: SqliteStore) -> Drive:
    """Return a run of two checkpoints, three records, one of which is the last row committed, two events, two
    messages, of which the first is consumed, and an effect."""
    drive = started(store)
    drive.commit(records=2, metadata='{"user": "ann"}')
    for message_id in ("m-1", "m-2"):
        store.append(message(message_id))
    commit = telling(saying(drive, status="interrupted"), "one", "two")
    commit.consumed = [("m-1", commit.rows.head_seq)]
    store.commit(commit)
    return drive


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    store = SqliteStore()
    small_thread(store)
    yield store
    store.close()


def raw(store: SqliteStore) -> apsw.Connection:
    connection = store._writer.transactions.connection
    assert connection is not None
    return connection


def columns() -> list[tuple[str, str]]:
    store = SqliteStore()
    found = [(table, name) for table in TABLES for _, name, *_ in raw(store).execute(f"pragma table_info({table})")]
    store.close()
    return found


def flips(value: Any) -> Iterator[Any]:
    """Return the value with each of its bits flipped, one after the other."""
    if value is None:
        yield from (0, 1, 2**62)
    elif isinstance(value, int):
        [bits] = struct.unpack("<Q", struct.pack("<q", value))
        yield from (struct.unpack("<q", struct.pack("<Q", bits ^ (1 << bit)))[0] for bit in range(64))
    elif isinstance(value, float):
        [bits] = struct.unpack("<Q", struct.pack("<d", value))
        yield from (struct.unpack("<d", struct.pack("<Q", bits ^ (1 << bit)))[0] for bit in range(64))
    else:
        data = value.encode() if isinstance(value, str) else value
        for place in range(len(data)):
            for bit in range(8):
                yield bytes([*data[:place], data[place] ^ (1 << bit), *data[place + 1 :]])
        if not data:
            yield b"\x00"


def read_all(store: SqliteStore) -> None:
    """Read everything a caller can, by every way."""
    everything(store)
    with store.reading() as reader:
        reader.threads(ThreadsQuery())
        reader.run("run-1")
        reader.effect("key-1")
        reader.effects_at(THREAD, "position-1")
        reader.effects(EffectsQuery())
        reader.events("run-1")
        reader.child(THREAD, 1, 0)
        reader.checkpoints(THREAD, [1, 4])
        reader.inbox(THREAD)
        reader.message(THREAD, "m-1")
        reader.records_of_kind(THREAD, "interrupted")
        reader.history(HistoryQuery(THREAD, filter={"user": "ann"}))


def is_found(store: SqliteStore, *, read: bool) -> bool:
    """Tell whether verify finds the damage. Reading, if it is tried too, must not raise anything else."""
    if read:
        try:
            read_all(store)
        except CorruptRecordError as error:
            assert error.fields()["table"] in TABLES
    return list(store.verify()) != []


@pytest.mark.parametrize(("table", "column"), columns())
def test_every_flipped_bit_is_found(store: SqliteStore, table: str, column: str) -> None:
    connection, key = raw(store), TABLES[table]
    text = {name: kind == "TEXT" for _, name, kind, *_ in connection.execute(f"pragma table_info({table})")}[column]
    rows = connection.execute(f"select {key}, {column} from {table}").fetchall()
    assert len(rows) == ROWS[table]
    missed, tried = [], 0
    for place, value in rows:
        for flipped in flips(value):
            connection.execute("begin")
            cast = "cast(?2 as text)" if text else "?2"
            try:
                connection.execute(f"update {table} set {column} = {cast} where {key} = ?1", (place, flipped))
            except apsw.ConstraintError:  # the table itself refuses it: NaN is null, a seq is taken
                connection.execute("rollback")
                continue
            if not is_found(store, read=tried % READ_EACH == 0):
                missed.append((place, flipped))
            tried += 1
            connection.execute("rollback")
    assert missed == []
    assert tried > 0
    assert not is_found(store, read=True)


def change(store: SqliteStore, statement: str) -> None:
    raw(store).execute(statement)
    assert raw(store).changes() > 0


def corrupt(store: SqliteStore) -> dict[str, Any]:
    """Return the fields of the error that reading meets; verify must find something too."""
    assert list(store.verify()) != []
    with pytest.raises(CorruptRecordError) as caught:
        everything(store)
    return caught.value.fields()


def test_an_untouched_thread_verifies(store: SqliteStore) -> None:
    assert list(store.verify()) == []
    read_all(store)


def test_damage_names_table_thread_and_seq(store: SqliteStore) -> None:
    change(store, "update records set body = x'00' where seq = 3")
    fields = corrupt(store)
    assert (fields["table"], fields["thread_id"], fields["seq"]) == ("records", THREAD, 3)


def test_text_that_is_no_text_names_table_thread_and_seq(store: SqliteStore) -> None:
    change(store, "update checkpoints set source = cast(x'ff' as text) where seq = 4")
    fields = corrupt(store)
    assert (fields["table"], fields["thread_id"], fields["seq"]) == ("checkpoints", THREAD, 4)


def test_a_lost_tail_is_found(store: SqliteStore) -> None:
    change(store, "delete from records where seq = 5")
    assert "lost tail" in corrupt(store)["reason"]


def test_a_lost_tail_of_checkpoints_is_found() -> None:
    store = SqliteStore()
    started(store).commit()
    change(store, "delete from checkpoints where seq = 2")
    assert "lost tail" in corrupt(store)["reason"]
    store.close()


def test_a_missing_ordinal_is_found(store: SqliteStore) -> None:
    change(store, "delete from records where seq = 2")
    assert "record 0 of base 1 is missing" in corrupt(store)["reason"]


def test_a_missing_parent_is_found(store: SqliteStore) -> None:
    change(store, "delete from checkpoints where seq = 1")
    assert any("its parent 1 is missing" in fault for fault in store.verify())
    with store.reading() as reader, pytest.raises(CorruptRecordError):
        reader.checkpoints(THREAD, [1, 4])


def test_a_missing_event_is_found(store: SqliteStore) -> None:
    change(store, "delete from events where ordinal = 1")
    assert any("event 1 of run 'run-1' is missing" in fault for fault in store.verify())
    with store.reading() as reader, pytest.raises(CorruptRecordError, match="event 1 of run 'run-1' is missing"):
        reader.events("run-1")


def test_a_lost_end_of_a_log_is_found() -> None:
    store = SqliteStore()
    store.commit(telling(started(store).ending(), "one", "two"))
    change(store, "delete from events where ordinal = 2")
    assert any("lost end: it has counted 2 events, 1 are there" in fault for fault in store.verify())
    with store.reading() as reader, pytest.raises(CorruptRecordError, match="lost end"):
        reader.events("run-1")
    store.close()


def test_an_event_that_was_put_between_is_found(store: SqliteStore) -> None:
    with store.reading() as reader:
        row = reader.events("run-1")[1]
    forged = row._replace(previous_digest=b"x" * 16)
    change_to = (forged.previous_digest, digest_of("event", forged[:-1]))
    raw(store).execute("update events set previous_digest = ?, digest = ? where ordinal = 2", change_to)
    assert any("the event before it is another" in fault for fault in store.verify())


def test_a_missing_message_is_found(store: SqliteStore) -> None:
    change(store, "delete from inbox where ordinal = 1")
    assert any("message 1 of the thread is missing" in fault for fault in store.verify())


def test_a_message_whose_record_is_missing_is_found(store: SqliteStore) -> None:
    with store.reading() as reader:
        row = reader.message(THREAD, "m-2")
    assert row is not None
    forged = row._replace(consumed_seq=99)
    change_to = (forged.consumed_seq, digest_of("message", forged[:-1]))
    raw(store).execute("update inbox set consumed_seq = ?, digest = ? where message_id = 'm-2'", change_to)
    assert any("the record 99 that consumed it is missing" in fault for fault in store.verify())


def test_an_effect_whose_record_is_gone_is_found(store: SqliteStore) -> None:
    change(store, "delete from records where seq = 5")
    assert any(
        "effects row" in fault and "record 5 that says how it stands is missing" in fault for fault in store.verify()
    )


def test_a_missing_run_is_found(store: SqliteStore) -> None:
    change(store, "delete from runs")
    assert any("its run 'run-1' is missing" in fault for fault in store.verify())


def test_rows_of_no_thread_are_found(store: SqliteStore) -> None:
    change(store, "delete from threads")
    faults = list(store.verify())
    assert [fault.partition(":")[0] for fault in faults] == ["checkpoints", "records", "runs", "effects"]
    change(store, "delete from runs")
    assert "events: rows of thread 'thread-1' have no run row" in list(store.verify())
    with store.reading() as reader, pytest.raises(CorruptRecordError):
        reader.newest(THREAD, "")


@pytest.mark.parametrize("head_seq", [1, 4, 6])
def test_a_forged_head_is_found_though_its_digest_is_right(store: SqliteStore, head_seq: int) -> None:
    with store.reading() as reader:
        row = reader.thread(THREAD)
    assert row is not None
    forged: ThreadRow = row._replace(head_seq=head_seq)
    raw(store).execute("update threads set head_seq = ?, digest = ?", (head_seq, thread_digest(forged)))
    assert corrupt(store)["table"] == "threads"


def test_a_row_that_was_put_between_is_found(store: SqliteStore) -> None:
    raw(store).execute("update records set base_digest = zeroblob(16) where seq = 5")
    assert any("seq" in fault or "records row" in fault for fault in store.verify())


def test_two_rows_swapped_are_found(store: SqliteStore) -> None:
    raw(store).execute("update records set body = (select body from records where seq = 3) where seq = 2")
    assert corrupt(store)["seq"] == 2


def test_a_commit_does_not_seal_damage_in(store: SqliteStore) -> None:
    drive = Drive(store, run_id="run-1", epoch=1)
    with store.reading() as reader:
        drive.last, drive.head = reader.newest(THREAD, ""), reader.records(THREAD, 4)[-1]
    drive.ordinals[4] = 1
    change(store, "update threads set graph_id = 'hraph'")
    with pytest.raises(CorruptRecordError):
        store.commit(drive.outcome())
    with pytest.raises(CorruptRecordError):
        store.renew(THREAD, "run-1", 1, 30.0)


def test_a_database_whose_pages_are_damaged_says_so(tmp_path: Any) -> None:
    path = tmp_path / "threads.db"
    store = SqliteStore(path)
    drive = small_thread(store)
    small = raw(store).pragma("page_count")
    for _ in range(50):
        drive.commit(body=b"b" * 2000)
    store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        for place in range(small * 4096, size, 4096):
            file.seek(place)
            file.write(b"\xff" * 64)
    store = SqliteStore(path)
    assert list(store.verify()) != []
    with pytest.raises(CorruptRecordError):
        everything(store)
    store.close()


def test_every_flipped_bit_of_a_shape_is_found(store: SqliteStore) -> None:
    shape = '{"nodes":{"a":1}}'
    claim = Drive(store, "other", run_id="other").claim()
    claim.shape = ShapeRow(fingerprint_of(shape), shape)
    store.admit(claim)
    for column, value in (("shape", shape), ("fingerprint", claim.shape.fingerprint)):
        for flipped in flips(value):
            raw(store).execute("begin")
            raw(store).execute(f"update shapes set {column} = cast(? as text)", (flipped,))
            assert list(store.verify()) != []
            if column == "shape":
                with store.reading() as reader, pytest.raises(CorruptRecordError, match="shapes row"):
                    reader.shape(claim.shape.fingerprint)
            raw(store).execute("rollback")
    assert list(store.verify()) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("set head_seq = head_seq - 1", "columns do not match its digest"),
        ("set parent_seq = 99", "columns do not match its digest"),
        ("set parent_lineage = null", "columns do not match its digest"),
        ("set digest = x'00'", "columns do not match its digest"),
        ("set lineage = 7", "its lineage 1 is missing"),
    ],
)
def test_a_lineage_that_was_altered_is_found_and_not_followed(change: str, fault: str) -> None:
    """INV-10."""
    store = SqliteStore()
    drive = started(store)
    first = drive.last
    drive.commit()
    drive.last, drive.lineages = first, 2
    drive.commit(lineage=1, source="fork")
    drive.commit(lineage=0)
    assert list(store.verify()) == []
    raw(store).execute(f"update lineages {change} where lineage = 1")
    assert any(fault in told for told in store.verify())
    if "lineage = 7" not in change:
        with store.reading() as reader, pytest.raises(CorruptRecordError):
            reader.newest(THREAD, "", 1)
    store.close()
