"""The contract between two stores on one database: import it for a backend that several stores share.

    from stepwell.testing.store_suite.shared import TestTwoStores, TestOneHost, other

with `TestManyHosts` for `TestOneHost` where stores on different hosts share it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from stepwell.errors import LeaseLostError, ThreadBusyError
from stepwell.store import Store
from stepwell.testing.clock import FakeClock
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started
from stepwell.testing.store_suite.fixtures import StoreFactory

__all__ = ["TestManyHosts", "TestOneHost", "TestTwoStores", "other"]


@pytest.fixture
def other(store_factory: StoreFactory, clock: FakeClock) -> Iterator[Store]:
    opened = store_factory(clock)
    yield opened
    opened.close()


class TestTwoStores:
    """INV-1, INV-2, with two real connections."""

    def test_what_one_commits_the_other_reads(self, store: Store, other: Store) -> None:
        drive = started(store)
        for _ in range(3):
            drive.commit(records=1)
            assert everything(other) == everything(store)

    def test_each_knows_the_other_for_the_same_database(self, store: Store, other: Store) -> None:
        assert store.is_same(other)
        assert other.is_same(store)

    def test_a_lease_holds_against_the_other(self, store: Store, other: Store) -> None:
        started(store)
        with pytest.raises(ThreadBusyError):
            Drive(other, run_id="run-2").take_over()

    def test_the_other_takes_over_and_fences_the_first_out(self, store: Store, other: Store, clock: FakeClock) -> None:
        stale = started(store)
        late = stale.step(records=1)
        clock.advance(31.0)
        fresh = Drive(other, run_id="run-2")
        fresh.take_over()
        fresh.commit()
        before = everything(other)
        with pytest.raises(LeaseLostError):
            store.commit(late)
        assert not store.renew(THREAD, "run-1", stale.epoch, 30.0)
        assert everything(other) == everything(store) == before

    def test_the_epoch_alone_fences_out_a_run_that_its_own_process_goes_on_with(
        self, store: Store, other: Store, clock: FakeClock
    ) -> None:
        """Run, process and head are the same then: only the epoch has changed."""
        stale = started(store)
        late = stale.step()
        clock.advance(31.0)
        taken = Drive(other, run_id="run-1").take_over()
        assert (taken.epoch, taken.run_id, taken.head_seq) == (2, "run-1", late.seen_seq)
        before = everything(other)
        with pytest.raises(LeaseLostError):
            store.commit(late)
        assert everything(other) == everything(store) == before

    def test_one_of_two_claims_wins(self, store: Store, other: Store) -> None:
        for number in range(10):
            thread_id = f"thread-{number}"
            ready, rows = threading.Barrier(2), []

            def go(on: Store, run_id: str, thread_id: str = thread_id, ready: threading.Barrier = ready) -> None:
                claim = Drive(on, thread_id, run_id=run_id).claim()
                ready.wait()
                rows.append(on.admit(claim))  # noqa: B023 - joined before the next turn

            threads = [
                threading.Thread(target=go, args=(on, f"{thread_id}-{name}"))
                for on, name in ((store, "a"), (other, "b"))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(row is None for row in rows) == [False, True]

    def test_a_snapshot_does_not_move(self, store: Store, other: Store) -> None:
        drive = started(store)
        first = drive.last
        with other.reading() as reader:
            assert reader.newest(THREAD, "") == first
            drive.commit()
            assert reader.newest(THREAD, "") == first
        with other.reading() as reader:
            assert reader.newest(THREAD, "") == drive.last

    def test_a_reader_never_sees_half_a_commit(self, store: Store, other: Store) -> None:
        drive = started(store)
        done = threading.Event()
        faults: list[str] = []

        def watch() -> None:
            while not done.is_set():
                with other.reading() as reader:
                    newest = reader.newest(THREAD, "")
                    assert newest is not None
                    found = 0 if newest.parent_seq is None else len(reader.records(THREAD, newest.parent_seq))
                    if found != (0 if newest.parent_seq is None else 3):
                        faults.append(f"{found} records beside checkpoint {newest.seq}")

        watcher = threading.Thread(target=watch)
        watcher.start()
        for _ in range(100):
            drive.commit(records=3)
        done.set()
        watcher.join()
        assert faults == []


class TestOneHost:
    """Where all stores are on one host, whose clock leases run by."""

    def test_a_lease_of_another_boot_has_expired(self, store: Store, store_factory: StoreFactory) -> None:
        started(store)
        rebooted = store_factory(FakeClock(boottime=1.0, boot_id="next-boot"))
        row = Drive(rebooted, run_id="run-2").take_over()
        assert (row.epoch, row.run_id) == (2, "run-2")
        rebooted.close()


class TestManyHosts:
    """Where stores may be on hosts of their own: another boot is another host, of which nothing is known."""

    def test_a_lease_of_another_host_holds_until_it_expires(
        self, store: Store, store_factory: StoreFactory, clock: FakeClock
    ) -> None:
        started(store)
        elsewhere = FakeClock(boottime=clock.boottime(), boot_id="another-host")
        other = store_factory(elsewhere)
        with pytest.raises(ThreadBusyError):
            Drive(other, run_id="run-2").take_over()
        elsewhere.advance(31.0)
        row = Drive(other, run_id="run-2").take_over()
        assert (row.epoch, row.run_id) == (2, "run-2")
        other.close()
