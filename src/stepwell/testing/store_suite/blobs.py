"""Large values: they come with the rows that refer to them, are there once by name, and go with their thread."""

from __future__ import annotations

import pytest

from stepwell import points
from stepwell.errors import LeaseLostError
from stepwell.store import BlobRow, Deletion, Store
from stepwell.testing.crash import SimulatedCrash, crash_at
from stepwell.testing.store_suite.drive import THREAD, started

NAMES = [bytes([number]) * 16 for number in (1, 2, 3)]


def blob(store: Store, name: bytes, body: bytes = b"\x00large\xff", thread_id: str = THREAD) -> BlobRow:
    """Return a value of a thread as it is written."""
    return store.sealer.blob(BlobRow(thread_id, name, body, b""))


def bodies(store: Store, *names: bytes, thread_id: str = THREAD) -> list[tuple[bytes, bytes]]:
    """Return the values of a thread that have these names."""
    with store.reading() as reader:
        return [(row.name, row.body) for row in reader.blobs(thread_id, names)]


def names(store: Store, thread_id: str = THREAD) -> list[bytes]:
    """Return the names of a thread's values."""
    with store.reading() as reader:
        return [row.name for row in reader.blobs(thread_id)]


class TestBlobs:
    """INV-1, INV-13, INV-14: a row never refers to what is lost, and nothing is there twice."""

    def test_values_come_with_the_rows_of_a_commit_and_are_read_by_name(self, store: Store) -> None:
        drive = started(store)
        step = drive.step()
        rows = [blob(store, NAMES[1], b""), blob(store, NAMES[0])]
        step.rows = step.rows._replace(blobs=rows)
        store.commit(step)
        assert names(store) == NAMES[:2]
        assert bodies(store, *NAMES) == [(NAMES[0], b"\x00large\xff"), (NAMES[1], b"")]
        assert bodies(store, NAMES[1], NAMES[2]) == [(NAMES[1], b"")]
        assert bodies(store) == []
        assert names(store, "another") == []
        assert list(store.verify()) == []

    def test_a_value_that_comes_again_is_there_once_and_makes_good_what_was_damaged(self, store: Store) -> None:
        drive = started(store)
        for body in (b"damaged", b"sound", b"sound"):
            step = drive.step()
            step.rows = step.rows._replace(blobs=[blob(store, NAMES[0], body)])
            store.commit(step)
        assert bodies(store, *NAMES) == [(NAMES[0], b"sound")]

    def test_threads_have_values_of_their_own(self, store: Store) -> None:
        for thread_id in (THREAD, "thread-2"):
            drive = started(store, thread_id, run_id=f"run of {thread_id}")
            step = drive.step()
            step.rows = step.rows._replace(blobs=[blob(store, NAMES[0], thread_id.encode(), thread_id)])
            store.commit(step)
        assert bodies(store, *NAMES) == [(NAMES[0], THREAD.encode())]
        store.delete(Deletion(THREAD, 5))
        assert (names(store), names(store, "thread-2")) == ([], [NAMES[0]])

    def test_a_value_of_another_thread_is_refused(self, store: Store) -> None:
        drive = started(store)
        step = drive.step()
        step.rows = step.rows._replace(blobs=[blob(store, NAMES[0], thread_id="thread-2")])
        with pytest.raises(ValueError, match="holds a row of thread 'thread-2'"):
            store.commit(step)
        assert names(store, "thread-2") == []

    def test_what_the_fence_keeps_out_leaves_no_value(self, store: Store) -> None:
        drive = started(store)
        late = drive.step()
        late.rows = late.rows._replace(blobs=[blob(store, NAMES[0])])
        store.delete(Deletion(THREAD, 5))
        with pytest.raises(LeaseLostError):
            store.commit(late)
        assert names(store) == []

    @pytest.mark.parametrize("point", [points.BEGUN, points.FENCED, points.WRITTEN])
    def test_a_commit_that_is_cut_off_leaves_no_value(self, store: Store, point: str) -> None:
        drive = started(store)
        step = drive.step()
        step.rows = step.rows._replace(blobs=[blob(store, NAMES[0])])
        with pytest.raises(SimulatedCrash), crash_at(point):
            store.commit(step)
        assert names(store) == []
