"""Pruning takes rows out of a thread that nobody drives, all of them or none, and leaves what stands for them."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import points
from stepwell.errors import LeaseLostError, ThreadBusyError
from stepwell.store import (
    NO_DIGEST,
    PRUNED,
    AnchorRow,
    CheckpointRow,
    Commit,
    Deletion,
    HistoryQuery,
    Message,
    Pruned,
    Pruning,
    Store,
    ThreadRow,
    seal_anchor,
)
from stepwell.testing.clock import FakeClock
from stepwell.testing.crash import SimulatedCrash, crash_at
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started


def ended(store: Store) -> Drive:
    """Return a drive that is over: five checkpoints, two records on the second."""
    drive = started(store)
    drive.commit()
    drive.commit(records=2)
    drive.commit()
    drive.commit()
    store.commit(drive.ending())
    return drive


def thread_of(store: Store) -> ThreadRow:
    with store.reading() as reader:
        found = reader.thread(THREAD)
    assert found is not None
    return found


def checkpoints_of(store: Store) -> list[CheckpointRow]:
    with store.reading() as reader:
        return reader.everything(THREAD)[0]


def anchor(row: CheckpointRow, *, held: bool = False, before: CheckpointRow | None = None, **columns: Any) -> AnchorRow:
    """Return what stands for a row, with nothing kept before it."""
    made = AnchorRow(
        thread_id=THREAD,
        seq=row.seq,
        held=int(held),
        parent_seq=None if before is None else before.seq,
        parent_digest=NO_DIGEST if before is None else before.digest,
        shown_seq=None,
        row_digest=row.digest,
        checkpoints=0 if held else 1,
        records=0,
        notes=0,
        pruned_at=9,
        digest=b"",
    )
    return seal_anchor(made._replace(**columns))


def pruning(store: Store, seen: ThreadRow | None = None) -> Pruning:
    """Return the pruning of an ended drive that cuts its second and third checkpoint, and holds the first."""
    first, second, third, *_ = checkpoints_of(store)
    anchors = [anchor(first, held=True), anchor(third, before=first, checkpoints=2)]
    return Pruning(seen or thread_of(store), [(second.seq, third.seq)], [(0, third.seq)], anchors, [])


class TestPruning:
    """INV-1, INV-2, INV-10: all of it or nothing, under the thread's lease, and the chain goes on over what was cut."""

    def test_what_is_left_verifies_and_shows_what_is_kept(self, store: Store) -> None:
        ended(store)
        rows = checkpoints_of(store)
        assert store.prune(pruning(store)) == Pruned(2, 2, 0, 0)
        with store.reading() as reader:
            assert [row.seq for row in reader.history(HistoryQuery(THREAD))] == [rows[4].seq, rows[3].seq]
            assert reader.newest(THREAD, "") == rows[4]
            assert reader.checkpoint(THREAD, "", rows[0].checkpoint_id) is None
            assert reader.checkpoints(THREAD, [rows[0].seq]) == [rows[0]]
            assert reader.seq_of(THREAD, "", rows[0].checkpoint_id) is None
            assert reader.id_of(THREAD, rows[2].seq) == ""
        assert list(store.verify()) == []

    def test_a_line_goes_on_over_a_gap_with_what_is_kept_before_it(self, store: Store) -> None:
        ended(store)
        first, _, third, *_ = checkpoints_of(store)
        work = pruning(store)
        gap = anchor(third, before=first, checkpoints=2)._replace(shown_seq=first.seq)
        work.anchors = [seal_anchor(gap)]
        store.prune(work)
        with store.reading() as reader:
            line = reader.history(HistoryQuery(THREAD, line_from=thread_of(store).head_seq))
            assert [row.seq for row in line][-1] == first.seq
            assert reader.id_of(THREAD, third.seq) == first.checkpoint_id
        assert list(store.verify()) == []

    def test_the_thread_goes_on_as_if_nothing_had_been_cut(self, store: Store) -> None:
        before = thread_of(store) if ended(store) else None
        store.prune(pruning(store))
        after = thread_of(store)
        assert before is not None
        assert after == before._replace(epoch=before.epoch + 1)
        drive = Drive(store, run_id="run-2")
        drive.take_over()
        drive.commit(records=1)
        assert list(store.verify()) == []

    def test_records_that_stay_on_what_was_cut_are_counted(self, store: Store) -> None:
        ended(store)
        first, second, third, *_ = checkpoints_of(store)
        with store.reading() as reader:
            records = reader.records(THREAD, second.seq)
        gaps = [
            anchor(first, held=True),
            anchor(second, before=first, records=1, notes=1),
            anchor(third, before=first, checkpoints=2),
        ]
        dropped = (records[0].seq, records[0].seq)
        store.prune(Pruning(thread_of(store), [(second.seq, third.seq)], [dropped], gaps, []))
        with store.reading() as reader:
            assert reader.records(THREAD, second.seq) == records[1:]
            assert reader.records_of(THREAD, [second.seq]) == {second.seq: records[1:]}
        assert list(store.verify()) == []
        store.prune(Pruning(thread_of(store), [], [(records[1].seq, records[1].seq)], [], []))
        assert [fault for fault in store.verify() if "1 records of this checkpoint were left, 0 are there" in fault]

    def test_a_row_that_is_lost_beside_a_gap_is_seen(self, store: Store) -> None:
        ended(store)
        store.prune(pruning(store))
        lost = checkpoints_of(store)[1]
        store.prune(Pruning(thread_of(store), [(lost.seq, lost.seq)], [], [], []))
        assert [fault for fault in store.verify() if f"its parent {lost.seq} is missing" in fault]

    def test_a_held_row_that_is_lost_is_seen(self, store: Store) -> None:
        ended(store)
        store.prune(pruning(store))
        held = checkpoints_of(store)[0]
        store.prune(Pruning(thread_of(store), [(held.seq, held.seq)], [], [], []))
        assert [fault for fault in store.verify() if "held there is missing" in fault]

    def test_an_anchor_that_is_lost_is_seen(self, store: Store) -> None:
        ended(store)
        work = pruning(store)
        store.prune(work)
        store.prune(Pruning(thread_of(store), [], [], [], [work.anchors[1].seq]))
        assert [fault for fault in store.verify() if "is missing" in fault]

    def test_a_thread_that_moved_is_left_alone(self, store: Store) -> None:
        ended(store)
        work = pruning(store)
        Drive(store, run_id="run-2").take_over()
        before = everything(store)
        assert store.prune(work) is None
        assert everything(store) == before

    def test_a_thread_that_a_run_is_at_work_on_is_busy(self, store: Store) -> None:
        drive = started(store)
        drive.commit()
        work = Pruning(thread_of(store), [(1, 1)], [], [], [])
        with pytest.raises(ThreadBusyError):
            store.prune(work)
        drive.commit()

    def test_a_run_whose_process_died_is_there_to_be_continued(self, store: Store, clock: FakeClock) -> None:
        drive = started(store)
        for _ in range(4):
            drive.commit()
        late: Commit = drive.step()
        clock.advance(31.0)
        assert store.prune(pruning(store)) == Pruned(2, 0, 0, 0)
        with pytest.raises(LeaseLostError):
            store.commit(late)
        row = thread_of(store)
        assert (row.status, row.run_id) == ("running", drive.run_id)
        assert not store.is_held(row)
        Drive(store, run_id=drive.run_id).take_over()
        assert list(store.verify()) == []

    def test_a_run_that_is_forgotten_is_known_no_more(self, store: Store) -> None:
        drive = ended(store)
        again = Drive(store, run_id="run-2")
        again.take_over()
        again.commit()
        store.commit(again.ending())
        first, *rows = checkpoints_of(store)
        cut, gap = (first.seq, rows[-2].seq), anchor(rows[-2], checkpoints=5)
        work = Pruning(thread_of(store), [cut], [cut], [gap], [], (), (drive.run_id,))
        assert store.prune(work) == Pruned(5, 2, 0, 1)
        with store.reading() as reader:
            assert reader.run(drive.run_id) is None
        assert list(store.verify()) == []

    def test_a_message_stays_known_when_the_record_that_took_it_is_cut(self, store: Store) -> None:
        drive = started(store)
        drive.commit()
        message = Message(THREAD, "m-1", "signal", "go", b"body", 1)
        store.append(message)
        commit = drive.outcome()
        commit.consumed = [("m-1", commit.rows.head_seq)]
        store.commit(commit)
        drive.commit()
        drive.commit()
        store.commit(drive.ending())
        store.prune(pruning(store))
        with store.reading() as reader:
            found = reader.message(THREAD, "m-1")
            assert found is not None
            assert found.consumed_seq == PRUNED
            assert reader.inbox(THREAD) == []
        assert store.append(message) == found
        assert list(store.verify()) == []

    @pytest.mark.parametrize("point", [points.BEGUN, points.FENCED, points.ROWS_DELETED, points.WRITTEN])
    def test_a_pruning_that_is_cut_off_takes_nothing(self, store: Store, point: str) -> None:
        ended(store)
        before, work = everything(store), pruning(store)
        with pytest.raises(SimulatedCrash), crash_at(point):
            store.prune(work)
        assert everything(store) == before
        assert store.prune(work) == Pruned(2, 2, 0, 0)
        assert list(store.verify()) == []

    def test_a_pruning_is_one_transaction(self, store: Store) -> None:
        ended(store)
        work, before = pruning(store), store.counts.transactions
        store.prune(work)
        assert store.counts.transactions == before + 1

    def test_a_deleted_thread_leaves_no_anchor(self, store: Store) -> None:
        ended(store)
        store.prune(pruning(store))
        store.delete(Deletion(THREAD, 5))
        with store.reading() as reader:
            assert reader.anchors(THREAD) == []
        assert list(store.verify()) == []

    def test_a_thread_that_moved_since_it_was_seen_is_not_deleted(self, store: Store) -> None:
        ended(store)
        seen = thread_of(store)
        drive = Drive(store, run_id="run-2")
        drive.take_over()
        before = everything(store)
        assert not store.delete(Deletion(THREAD, 5, seen=seen))
        assert not store.delete(Deletion(THREAD, 5, seen=thread_of(store)))
        assert everything(store) == before
        store.commit(drive.ending())
        assert store.delete(Deletion(THREAD, 5, seen=thread_of(store)))

    def test_an_outline_is_the_thread_without_its_bodies(self, store: Store) -> None:
        ended(store)
        with store.reading() as reader:
            checkpoints, records = reader.everything(THREAD)
            assert [row.digest for row in reader.outline(THREAD)] == [row.digest for row in checkpoints]
            outlined = [(row.seq, row.base_seq, row.kind, row.run_id) for row in reader.record_outline(THREAD)]
        assert outlined == [(row.seq, row.base_seq, row.kind, row.run_id) for row in records]
