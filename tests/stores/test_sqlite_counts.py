"""Cost is counted, not only timed: the exact transactions, statements and bytes of each kind of write."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from stepwell.errors import LeaseLostError, ThreadBusyError
from stepwell.store import Store
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.store_suite.drive import Drive, run_row, started
from tests.stores.waiting import wait_until

INPUT = len(b"input")


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    store = SqliteStore()
    yield store
    store.close()


def spent(store: Store, since: tuple[int, int, int] = (0, 0, 0)) -> tuple[int, int, int]:
    counts = store.counts
    return counts.transactions - since[0], counts.statements - since[1], counts.bytes - since[2]


def test_admission_is_begin_thread_checkpoint_run_commit(store: SqliteStore) -> None:
    started(store)
    assert spent(store) == (1, 5, len(b"body 1") + INPUT)


def test_a_takeover_costs_no_more(store: SqliteStore) -> None:
    store.commit(started(store).ending())
    before = spent(store)
    Drive(store, run_id="run-2").take_over()
    assert spent(store, before) == (1, 4, INPUT)


def test_ending_a_dead_run_adds_one_statement(store: SqliteStore) -> None:
    seen = Drive(store, lease_seconds=-1.0).admit()
    claim = Drive(store, run_id="run-2").claim(seen, rows=False)
    claim.ended = run_row(claim.thread_id, "run-1", status="failed")
    before = spent(store)
    store.admit(claim)
    assert spent(store, before) == (1, 5, INPUT * 2)


def test_a_step_is_begin_fence_checkpoint_commit(store: SqliteStore) -> None:
    drive = started(store)
    before = spent(store)
    drive.commit()
    assert spent(store, before) == (1, 4, len(b"body 2"))


def test_a_step_of_k_tasks_adds_a_statement_per_record(store: SqliteStore) -> None:
    drive = started(store)
    before = spent(store)
    drive.commit(records=3)
    assert spent(store, before) == (1, 7, len(b"outcome 2") * 3 + len(b"body 5"))


def test_a_last_step_settles_the_run_with_one_statement(store: SqliteStore) -> None:
    drive = started(store)
    before = spent(store)
    step = drive.step()
    step.lease_seconds, step.run = None, run_row(step.thread_id, "run-1", status="finished")
    store.commit(step)
    assert spent(store, before) == (1, 5, len(b"body 2") + INPUT)


def test_n_steps_are_n_transactions(store: SqliteStore) -> None:
    drive = started(store)
    before = spent(store)
    for _ in range(10):
        drive.commit()
    assert spent(store, before)[:2] == (10, 40)


def test_a_fenced_out_commit_is_begin_fence_look_rollback(store: SqliteStore) -> None:
    drive = started(store)
    step = drive.step()
    store.commit(step)
    before = spent(store)
    with pytest.raises(LeaseLostError):
        store.commit(step)
    assert spent(store, before) == (1, 4, 0)


def test_a_refused_claim_is_begin_claim_look_rollback(store: SqliteStore) -> None:
    started(store)
    before = spent(store)
    with pytest.raises(ThreadBusyError):
        Drive(store, run_id="run-2").take_over()
    assert spent(store, before) == (1, 4, 0)


def test_a_group_is_one_transaction_of_the_statements_of_its_members(store: SqliteStore) -> None:
    drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(4)]
    before = spent(store)
    with store._writer.lock:
        futures = [store.queue(drive.step()) for drive in drives]
    for future in futures:
        future.result()
    assert spent(store, before)[:2] == (1, 2 + 4 * 2)


def test_callers_that_wait_share_one_transaction(store: SqliteStore) -> None:
    drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(4)]
    before = spent(store)
    with ThreadPoolExecutor(4) as pool:
        with store._writer.lock:
            futures = [pool.submit(drive.commit) for drive in drives]
            wait_until(lambda: len(store._writer._waiting) == 4)
        assert [future.result() for future in futures] == [drive.last for drive in drives]
    assert spent(store, before)[:2] == (1, 2 + 4 * 2)


def test_a_group_member_fenced_out_adds_the_look_for_why(store: SqliteStore) -> None:
    drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(2)]
    late = drives[1].step()
    store.commit(late)
    before = spent(store)
    with store._writer.lock:
        futures = [store.queue(drives[0].step()), store.queue(late)]
    assert [type(future.exception()) for future in futures] == [type(None), LeaseLostError]
    assert spent(store, before)[:2] == (1, 2 + 2 + 2)
