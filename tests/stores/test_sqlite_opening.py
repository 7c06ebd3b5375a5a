"""What a database may be and where it may live: everything else is refused before anything is written."""

from pathlib import Path

import apsw
import pytest

from stepwell.errors import UnsupportedStorageError
from stepwell.stores.sqlite import SqliteStore
from stepwell.stores.sqlite.storage import network_file_system
from stepwell.testing.store_suite.drive import everything, started

MOUNTS = """\
/dev/vda / ext4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
server:/export /mnt/nfs nfs4 rw 0 0
//server/share /mnt/with\\040space cifs rw 0 0
user@host: /home/me/ssh fuse.sshfs rw 0 0
host /mnt/9 9p rw 0 0
/dev/vdb /mnt/nfs/local xfs rw 0 0
server:/b /covered nfs rw 0 0
/dev/vdc /covered ext4 rw 0 0
gvfsd-fuse /run/gvfs fuse.gvfsd-fuse rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data/x.db", None),
        ("/tmp/x.db", None),
        ("/mnt/nfs/x.db", "nfs4"),
        ("/mnt/nfsx/x.db", None),
        ("/mnt/with space/x.db", "cifs"),
        ("/home/me/ssh/deep/x.db", "fuse.sshfs"),
        ("/mnt/9/x.db", "9p"),
        ("/mnt/nfs/local/x.db", None),
        ("/covered/x.db", None),
        ("/run/gvfs/x.db", None),
        ("\\\\server\\share\\x.db", "UNC share"),
    ],
)
def test_network_file_systems_are_known_by_their_mounts(path: str, kind: str | None) -> None:
    assert network_file_system(path, MOUNTS) == kind


def test_a_path_on_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = f"server:/export {tmp_path.resolve()} nfs4 rw 0 0\n"
    monkeypatch.setattr("stepwell.stores.sqlite.storage._mounts", lambda: mounts)
    with pytest.raises(UnsupportedStorageError, match=r"network file system \(nfs4\)"):
        SqliteStore(tmp_path / "threads.db")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedStorageError, match="is a directory"):
        SqliteStore(tmp_path)


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedStorageError, match="does not exist"):
        SqliteStore(tmp_path / "missing" / "threads.db")


@pytest.mark.parametrize(
    "address", ["postgresql://ada:secret@host/db", "sqlite:///threads.db", "file:threads.db?mode=ro"]
)
def test_an_address_is_no_path_and_is_not_repeated(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnsupportedStorageError, match=r"by its path, not by an address") as raised:
        SqliteStore(address)
    assert "ada" not in str(raised.value) and list(tmp_path.iterdir()) == []


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(UnsupportedStorageError, match="The path is empty"):
        SqliteStore("")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a place that root cannot write either")
def test_a_place_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(UnsupportedStorageError, match="Cannot open"):
        SqliteStore("/proc/threads.db")


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n" * 1000)
    with pytest.raises(UnsupportedStorageError, match="not a SQLite database"):
        SqliteStore(path)
    assert path.read_text() == "dear diary\n" * 1000


def test_the_database_of_another_program_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("create table checkpoints (x); insert into checkpoints values (1)")
    connection.close()
    with pytest.raises(UnsupportedStorageError, match="another program"):
        SqliteStore(path)
    connection = apsw.Connection(str(path))
    assert connection.execute("select * from checkpoints").fetchall() == [(1,)]
    connection.close()


def test_a_newer_schema_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    SqliteStore(path).close()
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 2)
    connection.close()
    with pytest.raises(UnsupportedStorageError, match="schema version 2; this release knows 1"):
        SqliteStore(path)
    connection = apsw.Connection(str(path))
    assert connection.pragma("user_version") == 2
    connection.close()


def test_an_unknown_synchronous_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedStorageError, match="synchronous"):
        SqliteStore(tmp_path / "threads.db", synchronous="off")


@pytest.mark.parametrize(("given", "level"), [("full", 2), ("normal", 1)])
def test_less_than_full_only_by_name(tmp_path: Path, given: str, level: int) -> None:
    store = SqliteStore(tmp_path / "threads.db", synchronous=given)
    connection = store._writer.transactions.connection
    assert connection is not None
    assert connection.pragma("synchronous") == level
    assert connection.pragma("journal_mode") == "wal"
    store.close()


def test_a_file_that_vanished_does_not_come_back_empty(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    store = SqliteStore(path)
    drive = started(store)
    store.before_fork()  # closes the file, as a fork does
    store.after_fork_in_parent()
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(UnsupportedStorageError):
        drive.commit()
    assert not path.exists()
    store.close()


def test_a_closed_file_stands_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "threads.db")
    drive = started(store)
    drive.commit()
    before = everything(store)
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["threads.db"]
    again = SqliteStore(str(tmp_path / "threads.db"))
    assert everything(again) == before
    again.close()


def test_two_memory_stores_are_two() -> None:
    one, other = SqliteStore(), SqliteStore()
    started(one)
    assert everything(other) == (None, None, [], [], [])
    one.close()
    other.close()
