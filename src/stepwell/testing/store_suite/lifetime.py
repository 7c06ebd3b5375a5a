"""Atomicity at every point a process may die at, seen from inside; and the life of the store object."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from stepwell import points
from stepwell.errors import SaverClosedError
from stepwell.store import Store
from stepwell.testing.crash import SimulatedCrash, crash_at, record_points
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started

BEFORE_COMMIT = [points.BEGUN, points.FENCED, points.WRITTEN]


class TestAtomicity:
    """INV-1: all of a transaction, or nothing of it."""

    def test_a_commit_passes_every_point_once(self, store: Store) -> None:
        commit = started(store).step(records=2)
        with record_points() as reached:
            store.commit(commit)
        reached = [point for point in reached if point.startswith("transaction.")]
        assert reached == [points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE]

    def test_an_admission_passes_every_point_once(self, store: Store) -> None:
        with record_points() as reached:
            Drive(store).admit()
        reached = [point for point in reached if point.startswith("transaction.")]
        assert reached == [points.BEGUN, points.FENCED, points.WRITTEN, points.DURABLE]

    @pytest.mark.parametrize("point", BEFORE_COMMIT)
    def test_nothing_of_a_commit_is_left_by_a_crash_before_it_is_durable(self, store: Store, point: str) -> None:
        drive = started(store)
        before = everything(store)
        commit = drive.step(records=2)
        with crash_at(point), pytest.raises(SimulatedCrash):
            store.commit(commit)
        assert everything(store) == before
        store.commit(commit)
        assert list(store.verify()) == []

    @pytest.mark.parametrize("point", BEFORE_COMMIT)
    def test_nothing_of_an_admission_is_left_by_a_crash_before_it_is_durable(self, store: Store, point: str) -> None:
        claim = Drive(store).claim()
        with crash_at(point), pytest.raises(SimulatedCrash):
            store.admit(claim)
        assert everything(store) == (None, None, [], [], [])
        assert store.admit(claim) is not None

    def test_all_of_a_commit_is_there_after_a_crash_behind_it(self, store: Store) -> None:
        drive = started(store)
        commit = drive.step(records=2)
        with crash_at(points.DURABLE), pytest.raises(SimulatedCrash):
            store.commit(commit)
        assert everything(store)[1] == drive.last
        drive.commit()

    @pytest.mark.parametrize("point", BEFORE_COMMIT)
    def test_a_crash_of_a_queued_commit_reaches_its_future(self, store: Store, point: str) -> None:
        drive = started(store)
        before = everything(store)
        commit = drive.step()
        with crash_at(point):
            assert isinstance(store.queue(commit).exception(), SimulatedCrash)
        assert everything(store) == before
        store.queue(commit).result()


class TestLifetime:
    """A store serves every thread and every loop until it is closed, and says so afterwards."""

    def test_a_closed_store_says_so_to_every_call(self, store: Store) -> None:
        drive = started(store)
        step = drive.step()
        store.close()
        calls: list[Callable[[], object]] = [
            lambda: store.commit(step),
            lambda: store.queue(step).result(),
            lambda: store.admit(Drive(store, "other").claim()),
            lambda: store.renew(THREAD, "run-1", 1, 30.0),
            lambda: store.reading().__enter__(),
            lambda: list(store.verify()),
        ]
        for call in calls:
            with pytest.raises(SaverClosedError, match="Keep it open as long as graphs use it"):
                call()

    def test_closing_twice_is_closing_once(self, store: Store) -> None:
        store.close()
        store.close()

    def test_closing_lands_what_is_queued(self, store: Store) -> None:
        drive = started(store)
        futures = [store.queue(drive.step()) for _ in range(20)]
        store.close()
        for future in futures:
            future.result(timeout=0)

    def test_every_thread_may_read_and_write(self, store: Store) -> None:
        drive = started(store)
        seen: list[object] = []

        def go() -> None:
            drive.commit()
            seen.append(everything(store)[1])

        for _ in range(3):
            thread = threading.Thread(target=go)
            thread.start()
            thread.join()
            assert seen.pop() == drive.last

    def test_one_store_serves_several_loops(self, store: Store) -> None:
        async def go(drive: Drive) -> None:
            for _ in range(5):
                await asyncio.to_thread(store.queue(drive.step()).result)

        for number in range(2):
            drive = started(store, f"thread-{number}", run_id=f"run-{number}")
            asyncio.run(go(drive))
            assert everything(store, drive.thread_id)[1] == drive.last

    def test_counts_tell_transactions_and_bytes(self, store: Store) -> None:
        drive = started(store)
        before = (store.counts.transactions, store.counts.bytes)
        drive.commit(metadata='{"a": "é"}')
        assert store.counts.transactions - before[0] == 1
        assert store.counts.bytes - before[1] == len(b"body 2") + len('{"a": "é"}'.encode())

    def test_renewals_are_counted_apart(self, store: Store) -> None:
        drive = started(store)
        before = (store.counts.transactions, store.counts.statements)
        store.renew(THREAD, "run-1", drive.epoch, 30.0)
        assert (store.counts.transactions, store.counts.statements) == before
        assert store.counts.renewals == 1
