"""Deleting a thread leaves nothing but a tombstone, which keeps late writers out and lets the thread begin anew."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import points
from stepwell.errors import LeaseLostError
from stepwell.store import Deletion, Store, ThreadsQuery
from stepwell.testing.crash import SimulatedCrash, crash_at
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started

NOTHING: tuple[Any, ...] = (None, None, [], [], [])


def ended(store: Store, thread_id: str = THREAD, run_id: str = "run-1") -> Drive:
    """Return a drive that is over: two checkpoints in two lineages, two records."""
    drive = started(store, thread_id, run_id=run_id)
    drive.lineages = 2
    drive.commit(records=2, lineage=1, source="fork")
    store.commit(drive.ending())
    return drive


class TestDeletion:
    """INV-1, INV-2, INV-14: all of one thread, or nothing, and nothing of another."""

    def test_a_deleted_thread_reads_as_nothing(self, store: Store) -> None:
        ended(store)
        assert store.delete(Deletion(THREAD, 5))
        assert everything(store) == NOTHING
        with store.reading() as reader:
            assert reader.run("run-1") is None
            assert reader.lineages(THREAD) == []
            assert reader.records(THREAD, 1) == []
            assert reader.threads(ThreadsQuery()) == []
        assert list(store.verify()) == []

    def test_deleting_what_is_not_there_changes_nothing(self, store: Store) -> None:
        ended(store)
        before = everything(store)
        assert not store.delete(Deletion("thread-2", 5))
        assert store.delete(Deletion(THREAD, 5))
        assert not store.delete(Deletion(THREAD, 6))
        assert before != everything(store) == NOTHING

    def test_another_thread_keeps_everything(self, store: Store) -> None:
        ended(store)
        for number, thread_id in enumerate(["thread-_", "thread-%", "THREAD-1", "thread-1\x00", "thread-1 "]):
            ended(store, thread_id, f"other-{number}")
            before = everything(store, thread_id)
            store.delete(Deletion(THREAD, 5))
            assert everything(store, thread_id) == before

    def test_a_late_writer_does_not_bring_it_back(self, store: Store) -> None:
        drive = started(store)
        late = drive.step(records=1)
        store.delete(Deletion(THREAD, 5))
        with pytest.raises(LeaseLostError, match="it was deleted"):
            store.commit(late)
        with pytest.raises(LeaseLostError, match="it was deleted"):
            store.queue(drive.outcome()).result()
        assert not store.renew(THREAD, drive.run_id, drive.epoch, 30.0)
        assert everything(store) == NOTHING

    def test_it_can_begin_anew_and_the_late_writer_stays_out(self, store: Store) -> None:
        drive = started(store)
        late = drive.step()
        store.delete(Deletion(THREAD, 5))
        fresh = Drive(store, run_id="run-2", graph_id="another graph")
        assert fresh.admit().epoch == drive.epoch + 2
        fresh.commit(records=1)
        with pytest.raises(LeaseLostError):
            store.commit(late)
        with store.reading() as reader:
            assert reader.newest(THREAD, "") == fresh.last
            assert [run.run_id for run in reader.runs(THREAD)] == ["run-2"]
        assert list(store.verify()) == []

    def test_a_claim_on_what_was_deleted_meanwhile_lands_nowhere(self, store: Store) -> None:
        ended(store)
        with store.reading() as reader:
            seen = reader.thread(THREAD)
        store.delete(Deletion(THREAD, 5))
        assert store.admit(Drive(store, run_id="run-2").claim(seen, rows=False)) is None
        assert everything(store) == NOTHING

    def test_a_run_id_is_free_again(self, store: Store) -> None:
        ended(store)
        store.delete(Deletion(THREAD, 5))
        started(store, "thread-2", run_id="run-1")
        with store.reading() as reader:
            run = reader.run("run-1")
        assert run is not None
        assert run.thread_id == "thread-2"

    @pytest.mark.parametrize("point", [points.BEGUN, points.FENCED, points.ROWS_DELETED, points.WRITTEN])
    def test_a_deletion_that_is_cut_off_deletes_nothing(self, store: Store, point: str) -> None:
        ended(store)
        before = everything(store)
        with pytest.raises(SimulatedCrash), crash_at(point):
            store.delete(Deletion(THREAD, 5))
        assert everything(store) == before
        assert store.delete(Deletion(THREAD, 5))
        assert everything(store) == NOTHING

    def test_a_deletion_costs_one_transaction(self, store: Store) -> None:
        ended(store)
        before = store.counts.transactions
        store.delete(Deletion(THREAD, 5))
        assert store.counts.transactions == before + 1
