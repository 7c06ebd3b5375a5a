"""Copies: every row of a thread can be read at once, and a thread can be written whole with the runs it had."""

from __future__ import annotations

import pytest

from stepwell.errors import CorruptRecordError
from stepwell.store import NO_DIGEST, Claim, Rows, Store
from stepwell.superstep.origin import COPIED, Origin, encode_origin
from stepwell.testing.clock import FakeClock
from stepwell.testing.store_suite.drive import THREAD, Drive, checkpoint, everything, record, run_row, started


def whole(thread_id: str, runs: int, at_work: str = "") -> Claim:
    """Return the claim that writes a thread of one checkpoint and several runs at once."""
    row = checkpoint(thread_id, 1, None, run_id="copy-0")
    rows = [run_row(thread_id, f"copy-{n}", status="finished", started_at=-n) for n in range(runs)]
    return Claim(
        thread_id=thread_id,
        graph_id="graph",
        seen=None,
        run=None,
        rows=Rows(1, row.digest, 1, [row], []),
        lease_seconds=None,
        status="running" if at_work else "finished",
        now=7,
        runs=rows[::-1],
        at_work=at_work,
    )


class TestCopies:
    """INV-1, INV-10: all of a thread is read from one snapshot, and written in one transaction."""

    def test_everything_of_a_thread_is_read_in_order(self, store: Store) -> None:
        drive = started(store)
        drive.commit(records=2)
        drive.commit(namespace="child:0", records=1)
        started(store, "thread-2", run_id="run-2")
        with store.reading() as reader:
            checkpoints, records = reader.everything(THREAD)
            assert reader.everything("thread-3") == ([], [])
        assert [row.seq for row in checkpoints] == sorted(row.seq for row in checkpoints)
        assert [row.seq for row in records] == sorted(row.seq for row in records)
        assert (len(checkpoints), len(records)) == (3, 3)
        assert {row.thread_id for row in checkpoints} | {row.thread_id for row in records} == {THREAD}

    def test_a_thread_is_written_with_its_runs_in_their_order(self, store: Store) -> None:
        row = store.admit(whole(THREAD, 3))
        assert row is not None
        assert (row.run_id, row.holder, row.lease_until) == ("", "", 0.0)
        with store.reading() as reader:
            assert [run.run_id for run in reader.runs(THREAD)] == ["copy-2", "copy-1", "copy-0"]
        Drive(store, run_id="run-9").take_over()
        with store.reading() as reader:
            assert [run.run_id for run in reader.runs(THREAD)][:2] == ["run-9", "copy-2"]
        assert list(store.verify()) == []

    def test_a_run_that_was_going_on_can_be_taken_over_at_once(self, store: Store, clock: FakeClock) -> None:
        row = store.admit(whole(THREAD, 2, at_work="copy-1"))
        assert row is not None
        assert (row.status, row.run_id) == ("running", "copy-1")
        assert not store.is_held(row)
        Drive(store, run_id="copy-1").take_over()
        assert list(store.verify()) == []

    def test_a_thread_that_is_there_is_not_written_over(self, store: Store) -> None:
        started(store)
        before = everything(store)
        assert store.admit(whole(THREAD, 1)) is None
        assert everything(store) == before

    def test_a_lost_tail_is_not_copied(self, store: Store) -> None:
        claim = whole(THREAD, 1)
        claim.rows = claim.rows._replace(head_seq=2)
        store.admit(claim)
        with store.reading() as reader, pytest.raises(CorruptRecordError, match="lost tail"):
            reader.everything(THREAD)

    @pytest.mark.parametrize("lost", ["its checkpoint", "a record of it", "nothing"])
    def test_a_row_that_is_lost_before_an_origin_is_a_lost_tail(self, store: Store, lost: str) -> None:
        claim = whole(THREAD, 1)
        (base,) = claim.rows.checkpoints
        asked = record(base, 2, 0)
        body = encode_origin(Origin(COPIED, "other", 1, base.digest, 1, "other"))
        places = {"base_seq": 0, "base_digest": NO_DIGEST, "kind": "origin", "body": body}
        origin = [record(base, seq, seq - 3, **places) for seq in (3, 4)]
        claim.rows = Rows(
            4,
            origin[-1].digest,
            1,
            [] if lost == "its checkpoint" else [base],
            origin if lost == "a record of it" else [asked, *origin],
        )
        store.admit(claim)
        with store.reading() as reader:
            if lost == "nothing":
                assert reader.newest(THREAD, "") == base
                assert list(store.verify()) == []
                return
            with pytest.raises(CorruptRecordError, match="lost tail"):
                reader.newest(THREAD, "")
        assert {fault.thread_id for fault in store.verify()} == {THREAD}
