"""The fence (INV-2): what a run that lost its thread can still do, which is nothing; and how long a lease lasts."""

from __future__ import annotations

import pytest

from stepwell.errors import LeaseLostError
from stepwell.store import Store
from stepwell.testing.clock import FakeClock
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started


class TestFence:
    """INV-2."""

    def test_a_commit_lands_with_all_its_rows(self, store: Store) -> None:
        drive = started(store)
        base = drive.last
        assert base is not None
        after = drive.commit(records=2)
        with store.reading() as reader:
            assert reader.newest(THREAD, "") == after
            assert [row.ordinal for row in reader.records(THREAD, base.seq)] == [0, 1]
            thread = reader.thread(THREAD)
        assert thread is not None
        assert (thread.head_seq, thread.head_digest) == (after.seq, after.digest)

    def test_a_lost_lease_cannot_commit(self, store: Store, clock: FakeClock) -> None:
        stale = started(store)
        late = stale.step(records=1)
        clock.advance(31.0)
        Drive(store, run_id="run-2").take_over()
        before = everything(store)
        with pytest.raises(LeaseLostError) as caught:
            store.commit(late)
        assert caught.value.fields()["thread_id"] == THREAD
        assert everything(store) == before

    def test_a_lost_lease_cannot_queue(self, store: Store, clock: FakeClock) -> None:
        late = started(store).step()
        clock.advance(31.0)
        Drive(store, run_id="run-2").take_over()
        before = everything(store)
        with pytest.raises(LeaseLostError):
            store.queue(late).result()
        assert everything(store) == before

    @pytest.mark.parametrize("change", ["epoch", "run_id", "seen_seq", "thread_id"])
    def test_every_name_in_the_fence_counts(self, store: Store, change: str) -> None:
        drive = started(store)
        commit = drive.ending()
        commit.run = None
        wrong = {"epoch": 2, "run_id": "run-9", "seen_seq": 0, "thread_id": "thread-9"}[change]
        setattr(commit, change, wrong)
        before = everything(store)
        with pytest.raises(LeaseLostError):
            store.commit(commit)
        assert everything(store) == before

    def test_the_same_commit_lands_once(self, store: Store) -> None:
        commit = started(store).step()
        store.commit(commit)
        with pytest.raises(LeaseLostError):
            store.commit(commit)

    def test_a_commit_holds_rows_of_its_own_thread_only(self, store: Store) -> None:
        other, drive = started(store, "other"), started(store, run_id="run-2")
        commit = drive.step()
        stray = other.step()
        commit.rows = commit.rows._replace(checkpoints=[*commit.rows.checkpoints, *stray.rows.checkpoints])
        before = everything(store)
        with pytest.raises(ValueError, match="other"):
            store.commit(commit)
        assert everything(store) == before

    def test_a_settled_run_frees_the_thread_in_the_same_commit(self, store: Store) -> None:
        drive = started(store)
        store.commit(drive.ending("failed"))
        with store.reading() as reader:
            thread, run = reader.thread(THREAD), reader.run("run-1")
        assert thread is not None
        assert run is not None
        assert (thread.status, thread.run_id, thread.holder, thread.lease_until) == ("failed", "", "", 0.0)
        assert (run.status, run.finished_at) == ("failed", 2)

    def test_a_freed_thread_takes_no_more_commits_of_its_run(self, store: Store) -> None:
        drive = started(store)
        store.commit(drive.ending())
        with pytest.raises(LeaseLostError):
            drive.commit()


class TestLease:
    """INV-2: only the epoch fences; expiry gives others a right, and takes none from the holder."""

    def test_a_commit_renews_the_lease(self, store: Store, clock: FakeClock) -> None:
        drive = started(store)
        clock.advance(20.0)
        drive.commit()
        with store.reading() as reader:
            thread = reader.thread(THREAD)
        assert thread is not None
        assert thread.lease_until == clock.boottime() + 30.0

    def test_an_expired_lease_that_nobody_took_may_commit(self, store: Store, clock: FakeClock) -> None:
        drive = started(store)
        clock.advance(3600.0)
        drive.commit()

    def test_a_renewed_lease_lasts_longer(self, store: Store, clock: FakeClock) -> None:
        drive = started(store)
        clock.advance(20.0)
        assert store.renew(THREAD, "run-1", drive.epoch, 30.0)
        with store.reading() as reader:
            thread = reader.thread(THREAD)
        assert thread is not None
        assert thread.lease_until == clock.boottime() + 30.0
        drive.commit()

    def test_an_expired_lease_that_nobody_took_may_be_renewed(self, store: Store, clock: FakeClock) -> None:
        drive = started(store)
        clock.advance(3600.0)
        assert store.renew(THREAD, "run-1", drive.epoch, 30.0)

    def test_a_thread_is_held_while_its_lease_lasts(self, store: Store, clock: FakeClock) -> None:
        def held() -> bool:
            with store.reading() as reader:
                thread = reader.thread(THREAD)
            assert thread is not None
            return store.is_held(thread)

        drive = started(store)
        assert held()
        clock.advance(29.0)
        assert held()
        clock.advance(1.0)
        assert not held()
        drive.commit()
        assert held()
        store.commit(drive.ending())
        assert not held()

    def test_a_lost_lease_is_not_renewed(self, store: Store, clock: FakeClock) -> None:
        drive = started(store)
        clock.advance(31.0)
        Drive(store, run_id="run-2").take_over()
        before = everything(store)
        assert not store.renew(THREAD, "run-1", drive.epoch, 30.0)
        assert everything(store) == before

    @pytest.mark.parametrize(
        ("thread_id", "run_id", "epoch"), [("x", "run-1", 1), (THREAD, "x", 1), (THREAD, "run-1", 2)]
    )
    def test_a_lease_that_is_another_one_is_not_renewed(
        self, store: Store, thread_id: str, run_id: str, epoch: int
    ) -> None:
        started(store)
        assert not store.renew(thread_id, run_id, epoch, 30.0)

    def test_a_freed_lease_is_not_renewed(self, store: Store) -> None:
        drive = started(store)
        store.commit(drive.ending())
        assert not store.renew(THREAD, "run-1", drive.epoch, 30.0)
