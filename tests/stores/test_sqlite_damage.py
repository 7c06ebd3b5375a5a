"""INV-10: a bit that flips anywhere in the file of a database, what its rows are made of included, is told as damage.

No error of SQLite or Python itself comes through: `verify` yields a sentence, a read and an opening raise errors of
Stepwell. A sample runs with every other test; every bit of a small database is tried by the soak tests.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from stepwell.errors import CorruptRecordError, StepwellError, StoreError, UnsupportedStorageError
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import THREAD
from tests.stores.disk import Disk
from tests.stores.test_sqlite_integrity import ROWS, TABLES, raw, read_all, small_thread

PAGE = 4096
LOG_VERSIONS = (18, 19)
"""The bytes of a file's header that say it has a log; memory has none."""


class Cell(NamedTuple):
    """Where one row stands in the file: its sizes and types up to `columns`, then its values."""

    table: str
    start: int
    columns: int
    end: int


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an integer as SQLite writes them, and where it ends."""
    value = 0
    while True:
        value, at = value << 7 | data[at] & 0x7F, at + 1
        if data[at - 1] < 0x80:
            return value, at


def cells_of(data: bytes, table: str, page: int) -> Iterator[Cell]:
    """Return the rows of a table that fits on one page."""
    top = page * PAGE - PAGE
    has_rowid = {0x0D: True, 0x0A: False}[data[top]]
    for pointer in range(top + 8, top + 8 + 2 * int.from_bytes(data[top + 3 : top + 5], "big"), 2):
        start = top + int.from_bytes(data[pointer : pointer + 2], "big")
        size, at = varint(data, start)
        if has_rowid:
            _, at = varint(data, at)
        header, _ = varint(data, at)
        yield Cell(table, start, at + header, at + size)


def used(data: bytes) -> Iterator[tuple[int, int]]:
    """Return what pages hold: their headers and the rows at their ends. Between them nothing is ever read."""
    for top in range(0, len(data), PAGE):
        header = top or 100
        pointers, content = data[header + 3 : header + 5], data[header + 5 : header + 7]
        yield top, header + 12 + 2 * int.from_bytes(pointers, "big")
        yield top + int.from_bytes(content, "big"), top + PAGE


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the file of a small database: a run of two checkpoints and three records."""
    path = tmp_path_factory.mktemp("small") / "threads.db"
    store = SqliteStore(path)
    small_thread(store)
    store.close()
    return path.read_bytes()


@pytest.fixture(scope="module")
def cells(small: bytes) -> list[Cell]:
    connection = apsw.Connection(":memory:")
    connection.deserialize("main", in_memory(small))
    tables: Any = connection.execute("select name, rootpage from sqlite_schema where type = 'table'")
    roots = tables.fetchall()
    connection.close()
    found = [cell for table, page in roots for cell in cells_of(small, table, page)]
    assert {table: sum(cell.table == table for cell in found) for table in TABLES} == ROWS
    return found


def in_memory(data: bytes) -> bytes:
    return bytes(1 if at in LOG_VERSIONS else byte for at, byte in enumerate(data[:PAGE])) + data[PAGE:]


def flipped(data: bytes, bit: int) -> bytes:
    at = bit // 8
    return data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :]


def bits(start: int, end: int) -> range:
    """Return the bits of the bytes from `start` up to `end`."""
    return range(8 * start, 8 * end)


def undetected(small: bytes, tried: Iterator[int]) -> list[tuple[int, str]]:
    """Return the bits of rows whose flip `verify` or reading does not tell as it should, and what they do instead."""
    store = SqliteStore()
    wrong = []
    for bit in tried:
        raw(store).deserialize("main", flipped(in_memory(small), bit))
        try:
            if not list(store.verify()):
                wrong.append((bit, "not found"))
            read_all(store)
        except CorruptRecordError:
            pass
        except Exception as error:
            wrong.append((bit, repr(error)))
    store.close()
    return wrong


def test_a_row_whose_bits_flip_is_found_whatever_they_were(small: bytes, cells: list[Cell]) -> None:
    def sample() -> Iterator[int]:
        for cell in cells:
            yield from bits(cell.start, cell.columns)
            yield from islice(bits(cell.columns, cell.end), 0, None, 37)

    assert undetected(small, sample()) == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_row_is_found_by_every_bit_of_it(small: bytes, cells: list[Cell]) -> None:
    assert undetected(small, (bit for cell in cells for bit in bits(cell.start, cell.end))) == []


# -- the file around the rows -----------------------------------------------------------------------------------------


def use(path: Path, disk: Disk) -> None:
    """Open, verify, read and write a file that may be damaged. Raises what is not an error of Stepwell."""
    try:
        store = SqliteStore(path, vfs=disk.name)
    except (CorruptRecordError, UnsupportedStorageError) as error:
        assert str(path) in str(error)
        return
    with closing(store):
        assert all(store.verify())
        with suppress(CorruptRecordError):
            read_all(store)
        with suppress(StoreError):
            store.renew(THREAD, "run-1", 1, 30.0)


def raised(small: bytes, tried: Iterator[int], path: Path) -> list[tuple[int, str]]:
    """Return the bits of the file whose flip raises something else, and what that is."""
    disk, wrong = Disk(waits=False), []
    for bit in tried:
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        path.write_bytes(flipped(small, bit))
        try:
            use(path, disk)
        except Exception as error:
            wrong.append((bit, repr(error)))
    disk.unregister()
    return wrong


def test_no_error_of_sqlite_comes_through_from_a_damaged_first_page(small: bytes, tmp_path: Path) -> None:
    sample = [*bits(16, 100)[::3], *bits(100, PAGE)[::97]]
    assert raised(small, iter(sample), tmp_path / "threads.db") == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_error_of_sqlite_comes_through_from_any_damaged_bit(small: bytes, tmp_path: Path) -> None:
    tried = (bit for start, end in used(small) for bit in bits(start, end))
    assert raised(small, tried, tmp_path / "threads.db") == []


def damaged(small: bytes, path: Path, at: int, bit: int = 0) -> Path:
    path.write_bytes(flipped(small, 8 * at + bit))
    return path


def test_a_schema_that_cannot_be_read_is_corrupt(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    path.write_bytes(small.replace(b"CREATE TABLE records", b"CREBTE TABLE records"))  # also where a page split left it
    with pytest.raises(CorruptRecordError, match=r"threads\.db' is damaged: .* Restore it from a backup\.") as caught:
        SqliteStore(path)
    assert isinstance(caught.value.__cause__, apsw.Error)
    assert caught.value.fields()["path"] == str(path)


def test_a_damaged_page_is_told_with_what_to_do(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    path.write_bytes(small)
    with closing(apsw.Connection(str(path))) as connection:
        page = connection.execute("select rootpage from sqlite_schema where name = 'checkpoints'").get
    path.write_bytes(small[: PAGE * (page - 1)] + b"\xff" * PAGE + small[PAGE * page :])
    with (
        closing(SqliteStore(path)) as store,
        store.reading() as reader,
        pytest.raises(CorruptRecordError, match=r"A page of .* Restore the file from a backup\. .* `stepwell export`"),
    ):
        reader.newest(THREAD, "")


def test_a_schema_with_another_column_is_a_fault(small: bytes, tmp_path: Path) -> None:
    store = SqliteStore(damaged(small, tmp_path / "threads.db", small.rindex(b"holder ")))
    assert list(store.verify()) == [
        "the database file cannot be read on: no such column: holder. Restore it from a backup"
    ]
    with pytest.raises(CorruptRecordError, match="no such column: holder"), store.reading() as reader:
        reader.thread(THREAD)
    with pytest.raises(StepwellError, match="no such column: holder"):
        store.renew(THREAD, "run-1", 1, 30.0)
    store.close()


@pytest.mark.parametrize("bit", [0, 31])
def test_a_schema_version_that_never_was_is_corrupt(small: bytes, tmp_path: Path, bit: int) -> None:
    path = damaged(small, tmp_path / "threads.db", 63 - bit // 8, bit % 8)
    with pytest.raises(CorruptRecordError, match="its schema version is"):
        SqliteStore(path)


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("update checkpoints set parent_digest = x'ff'", "checkpoints"),
        ("update checkpoints set body = cast(x'ff' as text)", "checkpoints"),
        ("update records set base_seq = cast(x'ff' as text), ordinal = null", "records"),
        ("update runs set input = cast(x'ff' as text)", "runs"),
        ("update threads set head_seq = cast(x'ff' as text)", "threads"),
        ("update threads set thread_id = x'ff'", "threads"),
        ("update runs set run_id = cast(x'ff' as text)", "runs"),
        ("update checkpoints set lineage = 'text'", "checkpoints"),
        ("update checkpoints set seq = 'text' where seq = 4", "checkpoints"),
        ("update checkpoints set metadata = 5", "checkpoints"),
        ("update checkpoints set metadata = '[1]'", "checkpoints"),
        ("update records set digest = null", "records"),
        ("update events set kind = cast(x'ff' as text)", "events"),
        ("update events set created_at = 'text'", "events"),
    ],
)
def test_a_value_of_another_type_is_a_fault_of_its_row(statement: str, table: str) -> None:
    store = SqliteStore()
    small_thread(store)
    loosen(store)
    raw(store).execute(statement)
    assert any(fault.startswith(f"{table} row of thread") for fault in store.verify())
    with pytest.raises(CorruptRecordError):
        read_all(store)
    store.close()


def loosen(store: SqliteStore) -> None:
    """Let columns take what a damaged file can hold in them."""
    connection = raw(store)
    connection.pragma("writable_schema", True)
    connection.execute("update sqlite_schema set sql = replace(replace(sql, ' not null', ''), ') strict', ')')")
    connection.execute("update sqlite_schema set sql = replace(sql, ', without', ' without')")
    connection.pragma("writable_schema", "reset")
