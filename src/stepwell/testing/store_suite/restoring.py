"""Restoring writes a thread row for row as it was stored elsewhere, or not at all."""

from __future__ import annotations

import pytest

from stepwell import points
from stepwell.errors import LeaseLostError, RunConflictError
from stepwell.store import Deletion, Restoration, Store, StoredRow, ThreadRow
from stepwell.testing.crash import SimulatedCrash, crash_at
from stepwell.testing.store_suite.drive import THREAD, everything, started
from stepwell.testing.store_suite.pruning import ended, pruning


def taken_out(store: Store) -> list[StoredRow]:
    """Return every row of the thread as it is stored."""
    with store.reading() as reader:
        return list(reader.stored(THREAD))


def restoration(rows: list[StoredRow]) -> Restoration:
    return Restoration(ThreadRow._make(rows[0][1][:-1]), lambda: iter(rows))


class TestRestoring:
    """INV-1, INV-2, INV-10: what comes back verifies, and nobody who held the thread before can write to it."""

    def test_a_thread_comes_back_row_for_row(self, store: Store) -> None:
        ended(store)
        store.prune(pruning(store))
        before, rows = everything(store), taken_out(store)
        store.delete(Deletion(THREAD, 5))
        assert store.restore(restoration(rows))
        assert everything(store)[1:] == before[1:]
        assert taken_out(store)[1:] == rows[1:]
        assert list(store.verify()) == []

    def test_late_writers_of_either_life_stay_out(self, store: Store) -> None:
        drive = started(store)
        rows, late = taken_out(store), drive.step()
        store.delete(Deletion(THREAD, 5))
        again = started(store, run_id="run-2")
        later = again.step()
        store.delete(Deletion(THREAD, 6))
        assert store.restore(restoration(rows))
        for commit in (late, later):
            with pytest.raises(LeaseLostError):
                store.commit(commit)
        assert list(store.verify()) == []

    def test_nothing_is_written_over(self, store: Store) -> None:
        ended(store)
        rows, before = taken_out(store), everything(store)
        assert not store.restore(restoration(rows))
        assert everything(store) == before

    def test_a_run_id_that_is_taken_keeps_the_thread_out(self, store: Store) -> None:
        started(store)
        rows = taken_out(store)
        store.delete(Deletion(THREAD, 5))
        started(store, "thread-2", run_id="run-1")
        with pytest.raises(RunConflictError):
            store.restore(restoration(rows))
        assert taken_out(store)[1:] == []

    @pytest.mark.parametrize("point", [points.BEGUN, points.WRITTEN])
    def test_a_restoration_that_is_cut_off_writes_nothing(self, store: Store, point: str) -> None:
        ended(store)
        rows = taken_out(store)
        store.delete(Deletion(THREAD, 5))
        with pytest.raises(SimulatedCrash), crash_at(point):
            store.restore(restoration(rows))
        assert everything(store)[0] is None
        assert store.restore(restoration(rows))
