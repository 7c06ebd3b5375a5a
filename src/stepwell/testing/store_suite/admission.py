"""Admission (INV-2, INV-3): who gets a thread, and what is durable once they have it."""

from __future__ import annotations

import pytest

from stepwell import points
from stepwell.errors import RunConflictError, ThreadBusyError
from stepwell.store import Claim, Store
from stepwell.testing.clock import FakeClock
from stepwell.testing.crash import SimulatedCrash, crash_at
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, run_row, started


class TestAdmission:
    """INV-2, INV-3."""

    def test_a_new_thread_starts_at_epoch_one_with_its_lease_and_rows(self, store: Store, clock: FakeClock) -> None:
        drive = Drive(store)
        row = drive.admit()
        assert (row.epoch, row.run_id, row.head_seq, row.status, row.graph_id) == (1, "run-1", 1, "running", "graph")
        assert row.lease_until == clock.boottime() + 30.0
        with store.reading() as reader:
            assert reader.thread(THREAD) == row
            assert reader.newest(THREAD, "") == drive.last
            run = reader.run("run-1")
        assert run is not None
        assert run.input == b"input"

    def test_input_is_durable_before_any_checkpoint(self, store: Store) -> None:
        Drive(store).admit(rows=False)
        with store.reading() as reader:
            assert reader.newest(THREAD, "") is None
            assert [run.run_id for run in reader.runs(THREAD)] == ["run-1"]

    def test_a_claim_of_a_thread_that_exists_by_now_is_stale(self, store: Store) -> None:
        started(store)
        before = everything(store)
        assert store.admit(Drive(store, run_id="run-2").claim(None)) is None
        assert everything(store) == before

    def test_a_claim_of_a_thread_that_moved_on_is_stale(self, store: Store) -> None:
        drive = started(store)
        store.commit(drive.ending())
        with store.reading() as reader:
            seen = reader.thread(THREAD)
        Drive(store, run_id="run-2").take_over()
        before = everything(store)
        assert store.admit(Drive(store, run_id="run-3").claim(seen, rows=False)) is None
        assert everything(store) == before

    def test_a_claim_of_a_thread_that_does_not_exist_is_stale(self, store: Store) -> None:
        seen = Drive(store).admit()
        assert store.admit(Drive(store, "missing", run_id="run-2").claim(seen, rows=False)) is None
        with store.reading() as reader:
            assert reader.thread("missing") is None

    def test_a_live_lease_keeps_others_out(self, store: Store, clock: FakeClock) -> None:
        started(store)
        before = everything(store)
        clock.advance(10.0)
        with pytest.raises(ThreadBusyError) as caught:
            Drive(store, run_id="run-2").take_over()
        fields = caught.value.fields()
        assert (fields["thread_id"], fields["run_id"]) == (THREAD, "run-1")
        assert fields["expires_in"] == pytest.approx(20.0)
        assert fields["holder"] == before[0].holder
        assert everything(store) == before

    def test_the_same_run_id_is_kept_out_too(self, store: Store) -> None:
        started(store)
        with pytest.raises(ThreadBusyError):
            Drive(store).take_over()

    def test_an_expired_lease_is_taken_with_the_next_epoch(self, store: Store, clock: FakeClock) -> None:
        started(store)
        clock.advance(30.0)
        row = Drive(store, run_id="run-2").take_over()
        assert (row.epoch, row.run_id) == (2, "run-2")

    def test_a_freed_thread_is_taken_at_once(self, store: Store) -> None:
        store.commit(started(store).ending())
        row = Drive(store, run_id="run-2").take_over()
        assert (row.epoch, row.run_id, row.head_seq) == (2, "run-2", 1)

    def test_a_claim_without_lease_leaves_the_thread_free(self, store: Store) -> None:
        row = Drive(store, lease_seconds=None).admit(source="update")
        assert (row.epoch, row.run_id, row.holder, row.lease_until) == (1, "", "", 0.0)
        assert Drive(store, run_id="run-2").take_over().epoch == 2

    def test_a_run_id_of_another_thread_is_refused_and_nothing_written(self, store: Store) -> None:
        started(store, "other")
        with pytest.raises(RunConflictError):
            Drive(store).admit()
        with store.reading() as reader:
            assert reader.thread(THREAD) is None
            run = reader.run("run-1")
        assert run is not None
        assert run.thread_id == "other"

    def test_a_crashed_run_is_continued_under_its_own_id(self, store: Store, clock: FakeClock) -> None:
        started(store)
        clock.advance(31.0)
        drive = Drive(store)
        assert drive.take_over().epoch == 2
        drive.commit()
        with store.reading() as reader:
            assert len(reader.runs(THREAD)) == 1


class TestEndedRun:
    """INV-1, INV-2: the run of a dead process ends in the transaction that takes its thread, or not at all."""

    def test_the_dead_run_ends_with_the_claim(self, store: Store, clock: FakeClock) -> None:
        started(store)
        clock.advance(31.0)
        claim = ending_the_first(store)
        transactions = store.counts.transactions
        row = store.admit(claim)
        assert store.counts.transactions - transactions == 1
        assert row is not None
        assert (row.epoch, row.run_id) == (2, "run-2")
        with store.reading() as reader:
            assert reader.run("run-1") == claim.ended
            assert reader.run("run-2") == claim.run
            assert [run.run_id for run in reader.runs(THREAD)] == ["run-2", "run-1"]
        assert list(store.verify()) == []

    def test_it_ends_with_an_edit_too(self, store: Store, clock: FakeClock) -> None:
        started(store)
        clock.advance(31.0)
        claim = ending_the_first(store)
        claim.run = claim.lease_seconds = None
        assert store.admit(claim) is not None
        with store.reading() as reader:
            assert reader.runs(THREAD) == [claim.ended]

    def test_it_does_not_end_where_the_thread_is_busy(self, store: Store) -> None:
        started(store)
        before = everything(store)
        with pytest.raises(ThreadBusyError):
            store.admit(ending_the_first(store))
        assert everything(store) == before

    def test_it_does_not_end_where_the_claim_is_stale(self, store: Store, clock: FakeClock) -> None:
        started(store)
        claim = ending_the_first(store)
        clock.advance(31.0)
        Drive(store).take_over()
        before = everything(store)
        assert store.admit(claim) is None
        assert everything(store) == before

    def test_it_does_not_end_where_the_claimed_run_is_of_another_thread(self, store: Store, clock: FakeClock) -> None:
        started(store)
        started(store, "other", run_id="run-2")
        clock.advance(31.0)
        before = everything(store)
        with pytest.raises(RunConflictError):
            store.admit(ending_the_first(store))
        assert everything(store) == before

    def test_an_ended_run_of_another_thread_refuses_the_claim(self, store: Store, clock: FakeClock) -> None:
        started(store)
        started(store, "other", run_id="run-3")
        clock.advance(31.0)
        before = everything(store), everything(store, "other")
        claim = ending_the_first(store)
        claim.ended = run_row("other", "run-3", status="failed")
        with pytest.raises(ValueError, match="other"):
            store.admit(claim)
        claim.ended = run_row(THREAD, "run-3", status="failed")
        with pytest.raises(RunConflictError):
            store.admit(claim)
        assert (everything(store), everything(store, "other")) == before

    @pytest.mark.parametrize("point", [points.BEGUN, points.FENCED, points.WRITTEN])
    def test_it_does_not_end_where_the_claim_crashes(self, store: Store, clock: FakeClock, point: str) -> None:
        started(store)
        clock.advance(31.0)
        before = everything(store)
        with crash_at(point), pytest.raises(SimulatedCrash):
            store.admit(ending_the_first(store))
        assert everything(store) == before


def ending_the_first(store: Store) -> Claim:
    """Return run 2's claim of the thread as it is now, which ends run 1."""
    with store.reading() as reader:
        seen = reader.thread(THREAD)
    claim = Drive(store, run_id="run-2").claim(seen, rows=False)
    claim.ended = run_row(THREAD, "run-1", status="failed", finished_at=2, error="its process died")
    return claim
