"""A thread as one file: it goes out whole, comes in whole or not at all, and goes on where it stood."""

import errno
import operator
import os
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import (
    START,
    Command,
    CompiledGraph,
    InMemorySaver,
    SqliteSaver,
    StateGraph,
    ThreadExistsError,
    UnknownThreadError,
    effect,
    interrupt,
    points,
)
from stepwell.errors import FileTakenError, ThreadFileError, ThreadFileNewerError, UnusableFileError
from stepwell.savers.retention.thread_file import Written, rows_of
from stepwell.store import Message
from stepwell.testing import SimulatedCrash, crash_at

THREAD: Any = {"configurable": {"thread_id": "t"}}


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


@effect
def pay(amount: int, idempotency_key: str) -> str:
    return f"paid {amount}"


def _work(state: Log) -> Log:
    return {"log": [pay(5), interrupt("well?")]}


def graph_of(saver: SqliteSaver) -> CompiledGraph:
    builder = StateGraph(Log)
    builder.add_node("work", _work)
    builder.add_edge(START, "work")
    compiled: CompiledGraph = builder.compile(checkpointer=saver, events=True)
    return compiled


def lived(saver: SqliteSaver) -> CompiledGraph:
    """Return a graph whose thread has branches, effects, logs, a message, a gap and an open question."""
    graph = graph_of(saver)
    for number in range(3):
        graph.invoke({"log": [f"{number}"]}, THREAD)
        graph.invoke(Command(resume="yes"), THREAD)
    graph.fork(list(graph.get_state_history(THREAD))[2].config)
    graph.invoke({"log": ["on"]}, THREAD, on_pending="discard")
    saver.store.append(Message("t", "m", "signal", "k", b"body", 1))
    saver.prune("t", keep_last=2)
    return graph


def stored(saver: SqliteSaver) -> list[Any]:
    """Return every row of the thread but its own, whose epoch moves on."""
    with saver.store.reading() as reader:
        return [row for row in reader.stored("t") if row[0] != "threads"]


def test_a_thread_comes_in_as_it_went_out(saver: SqliteSaver, tmp_path: Path) -> None:
    graph, path = lived(saver), tmp_path / "t.thread"
    written = saver.export_thread("t", path)
    assert (written.thread_id, written.bytes) == ("t", path.stat().st_size)
    with SqliteSaver(tmp_path / "other.db") as other:
        assert other.import_thread(path) == written
        assert stored(other) == stored(saver)
        assert list(other.store.verify()) == []
        moved = graph_of(other)
        assert moved.get_state(THREAD) == graph.get_state(THREAD)
        assert list(moved.get_state_history(THREAD)) == list(graph.get_state_history(THREAD))
        assert moved.invoke(Command(resume="no"), THREAD)["log"][-1] == "no"
        assert list(other.store.verify()) == []


def test_a_thread_is_imported_over_none_and_once(saver: SqliteSaver, tmp_path: Path) -> None:
    lived(saver)
    saver.export_thread("t", tmp_path / "t.thread")
    with pytest.raises(ThreadExistsError):
        saver.import_thread(tmp_path / "t.thread")
    before = stored(saver)
    saver.delete_thread("t")
    saver.import_thread(tmp_path / "t.thread")
    assert stored(saver) == before


@pytest.mark.parametrize("point", [points.BEGUN, points.WRITTEN])
def test_an_import_that_is_cut_off_leaves_nothing(saver: SqliteSaver, tmp_path: Path, point: str) -> None:
    lived(saver)
    saver.export_thread("t", tmp_path / "t.thread")
    with InMemorySaver() as other:
        with pytest.raises(SimulatedCrash), crash_at(point):
            other.import_thread(tmp_path / "t.thread")
        assert stored(other) == []
        other.import_thread(tmp_path / "t.thread")
        assert stored(other) == stored(saver)


def test_a_file_that_lost_or_changed_a_byte_anywhere_is_not_imported(tmp_path: Path) -> None:
    path, broken = tmp_path / "t.thread", tmp_path / "broken"
    with InMemorySaver() as saver, InMemorySaver() as other:
        graph_of(saver).invoke({"log": []}, THREAD)
        saver.export_thread("t", path)
        whole = path.read_bytes()
        for at in range(0, len(whole), 97):
            for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
                broken.write_bytes(damaged)
                with pytest.raises(ThreadFileError):
                    other.import_thread(broken)
        broken.write_bytes(whole + b"x")
        with pytest.raises(ThreadFileError):
            other.import_thread(broken)
        assert stored(other) == []


def test_a_file_of_a_newer_release_is_refused_as_that(saver: SqliteSaver, tmp_path: Path) -> None:
    path = tmp_path / "t.thread"
    path.write_bytes(b"stepwell thread 2\nwhatever")
    with pytest.raises(ThreadFileNewerError, match="format 2"):
        saver.import_thread(path)


def test_what_is_not_there_is_not_exported_and_what_is_there_not_written_over(
    saver: SqliteSaver, tmp_path: Path
) -> None:
    with pytest.raises(UnknownThreadError):
        saver.export_thread("t", tmp_path / "t.thread")
    lived(saver)
    saver.export_thread("t", tmp_path / "t.thread")
    with pytest.raises(FileTakenError, match=r"t\.thread is there already"):
        saver.export_thread("t", tmp_path / "t.thread")
    assert [path.name for path in tmp_path.glob("*.part")] == []


@pytest.mark.parametrize(
    "given", ["", None, 5, b"t.thread", "a\0b", "no folder/t.thread", "a file/t.thread", "x" * 300]
)
def test_a_file_that_cannot_be_written_or_read_is_told_and_nothing_is_left(
    saver: SqliteSaver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").touch()
    lived(saver)
    before = stored(saver)
    with pytest.raises(UnusableFileError, match=r"cannot be written: .+\. Nothing was exported"):
        saver.export_thread("t", given)
    with pytest.raises(UnusableFileError, match=r"cannot be read: .+\. Nothing was imported"):
        saver.import_thread(given)
    assert stored(saver) == before
    assert [path.name for path in tmp_path.glob("*.thread*")] == []


def test_what_is_a_folder_or_not_there_is_not_read(saver: SqliteSaver, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "no such file"):
        with pytest.raises(UnusableFileError, match="cannot be read"):
            saver.import_thread(place)


def test_a_disk_that_is_full_leaves_no_part_of_a_file(
    saver: SqliteSaver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(saver)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(UnusableFileError, match="No space left on device"):
            saver.export_thread("t", tmp_path / "t.thread")
    assert list(tmp_path.glob("*.thread*")) == []
    monkeypatch.setattr(os, "link", full)  # as where a file system has no links: the name is given otherwise
    saver.export_thread("t", tmp_path / "t.thread")
    assert [path.name for path in tmp_path.glob("*.thread*")] == ["t.thread"]


def test_of_two_exports_to_one_file_at_once_one_is_told_that_it_is_taken(saver: SqliteSaver, tmp_path: Path) -> None:
    """Each writes a part of its own: neither ends up with rows of the other, nor over it."""
    lived(saver)
    path = tmp_path / "t.thread"
    one, other = (Written(path, {"format": 1}) for _ in range(2))
    one.add(("threads", ("one",)))
    other.add(("threads", ("other",)))
    one.finish()
    with pytest.raises(FileTakenError):
        other.finish()
    other.abandon()
    assert list(rows_of(path)) == [("threads", ("one",))]
    assert [each.name for each in tmp_path.glob("*.thread*")] == ["t.thread"]
