"""Order and company: commits land as they were queued, and many at once do not harm each other."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from stepwell.errors import LeaseLostError, StoreError
from stepwell.store import Queued, Store
from stepwell.testing.clock import FakeClock
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started

CALLERS = 16
STEPS = 20


class TestOrder:
    """Writes land in the order in which they were queued."""

    def test_queued_commits_land_in_order(self, store: Store) -> None:
        drive = started(store)
        futures = [store.queue(drive.step()) for _ in range(50)]
        for future in futures:
            future.result()
        assert everything(store)[1] == drive.last

    def test_a_commit_after_a_queued_one_lands_after_it(self, store: Store) -> None:
        drive = started(store)
        for _ in range(20):
            future = store.queue(drive.step())
            drive.commit()
            future.result()
        assert everything(store)[1] == drive.last

    def test_what_follows_a_lost_commit_of_a_run_is_lost_too(self, store: Store) -> None:
        drive = started(store)
        drive.step()  # never handed over
        futures = [store.queue(drive.step()) for _ in range(3)]
        for future in futures:
            with pytest.raises(LeaseLostError):
                future.result()

    def test_a_future_may_queue_the_next_commit(self, store: Store) -> None:
        drive = started(store)
        first, second = drive.step(), drive.step()
        chained: Future[None] = Future()

        def go_on(_: Queued) -> None:
            store.commit(second)
            chained.set_result(None)

        store.queue(first).add_done_callback(go_on)
        assert chained.result() is None
        assert everything(store)[1] == drive.last


class TestGroupCommit:
    """INV-1, INV-2: members of one transaction stand or fall each by its own fence."""

    def test_many_callers_all_land(self, store: Store) -> None:
        drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(CALLERS)]
        ready = threading.Barrier(CALLERS)

        def go(drive: Drive) -> None:
            ready.wait()
            for _ in range(STEPS):
                drive.commit(records=1)

        with ThreadPoolExecutor(CALLERS) as pool:
            list(pool.map(go, drives))
        for drive in drives:
            assert everything(store, drive.thread_id)[1] == drive.last
        assert list(store.verify()) == []

    def test_a_fenced_out_member_drops_out_alone(self, store: Store, clock: FakeClock) -> None:
        drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(CALLERS)]
        clock.advance(31.0)
        for drive in drives[::2]:
            Drive(store, drive.thread_id, run_id=f"new-{drive.run_id}").take_over()
        before = [everything(store, drive.thread_id) for drive in drives[::2]]
        futures = [store.queue(drive.step(records=1)) for drive in drives]
        for number, future in enumerate(futures):
            error = future.exception()
            assert (error is None) if number % 2 else isinstance(error, LeaseLostError)
        assert [everything(store, drive.thread_id) for drive in drives[::2]] == before
        for drive in drives[1::2]:
            assert everything(store, drive.thread_id)[1] == drive.last

    def test_a_faulty_member_drops_out_alone(self, store: Store) -> None:
        good, bad = started(store, "good"), started(store, "bad", run_id="run-2")
        bad.commit()
        faulty = bad.step(checkpoint_id="checkpoint-1")  # its id is taken
        futures = [store.queue(good.step()), store.queue(faulty), store.queue(good.step())]
        futures[0].result()
        futures[2].result()
        with pytest.raises(StoreError):
            futures[1].result()
        assert everything(store, "good")[1] == good.last
        assert everything(store, "bad")[0].head_seq == 2

    def test_one_of_two_writers_of_one_head_wins(self, store: Store) -> None:
        drive = started(store)
        for _ in range(STEPS):
            commit = drive.step()
            errors = [future.exception() for future in [store.queue(commit), store.queue(commit)]]
            assert [type(error) for error in errors] == [type(None), LeaseLostError]
        assert everything(store, THREAD)[1] == drive.last
