"""Reads: what each verb returns, what order decides, and that a snapshot is one."""

from __future__ import annotations

import pytest

from stepwell.errors import CorruptRecordError
from stepwell.store import CheckpointRow, Store, ThreadsQuery
from stepwell.testing.clock import FakeClock
from stepwell.testing.store_suite.drive import THREAD, Drive, checkpoint, rows_of, run_row, started


def branched(store: Store) -> list[CheckpointRow]:
    """Return five checkpoints: 1, 2, 3 in lineage 0, 4 in lineage 1 on 2, 5 in a child namespace on 4."""
    drive = started(store)
    first = drive.last
    assert first is not None
    second, third = drive.commit(), drive.commit()
    drive.lineages = 2
    drive.last = second
    fourth = drive.commit(lineage=1, source="fork")
    drive.last = fourth
    fifth = drive.commit(lineage=1, namespace="child:0")
    return [first, second, third, fourth, fifth]


class TestReading:
    """INV-9: order is seq, never an id and never a clock."""

    def test_an_unknown_thread_reads_as_nothing(self, store: Store) -> None:
        with store.reading() as reader:
            assert reader.thread("x") is None
            assert reader.newest("x", "") is None
            assert reader.checkpoint("x", "", "y") is None
            assert reader.child("x", 1, 0) is None
            assert reader.checkpoints("x", []) == []
            assert reader.records("x", 1) == []
            assert reader.runs("x") == []
            assert reader.run("x") is None
            assert reader.threads(ThreadsQuery()) == []

    def test_newest_is_that_of_the_namespace(self, store: Store) -> None:
        rows = branched(store)
        with store.reading() as reader:
            assert reader.newest(THREAD, "") == rows[3]
            assert reader.newest(THREAD, "child:0") == rows[4]
            assert reader.newest(THREAD, "child:1") is None

    def test_newest_of_a_lineage(self, store: Store) -> None:
        rows = branched(store)
        with store.reading() as reader:
            assert reader.newest(THREAD, "", 0) == rows[2]
            assert reader.newest(THREAD, "", 1) == rows[3]
            assert reader.newest(THREAD, "", 2) is None

    def test_a_child_is_that_of_the_lineage(self, store: Store) -> None:
        rows = branched(store)
        with store.reading() as reader:
            assert reader.child(THREAD, 2, 0) == rows[2]
            assert reader.child(THREAD, 2, 1) == rows[3]
            assert reader.child(THREAD, 3, 0) is None

    def test_a_checkpoint_is_found_by_its_id_in_its_namespace(self, store: Store) -> None:
        rows = branched(store)
        with store.reading() as reader:
            assert reader.checkpoint(THREAD, "", "checkpoint-3") == rows[2]
            assert reader.checkpoint(THREAD, "child:0", "checkpoint-5") == rows[4]
            assert reader.checkpoint(THREAD, "", "checkpoint-5") is None

    def test_checkpoints_come_by_seq_and_none_may_be_missing(self, store: Store) -> None:
        rows = branched(store)
        with store.reading() as reader:
            assert reader.checkpoints(THREAD, [4, 1, 4]) == [rows[0], rows[3]]
            with pytest.raises(CorruptRecordError) as caught:
                reader.checkpoints(THREAD, [1, 9])
        assert caught.value.fields()["seq"] == 9

    def test_a_clock_that_steps_back_does_not_change_what_is_newest(self, store: Store) -> None:
        drive = started(store)
        drive.commit(created_at=5_000_000, checkpoint_id="zzz")
        last = drive.commit(created_at=0, checkpoint_id="aaa")
        with store.reading() as reader:
            assert reader.newest(THREAD, "") == last

    def test_records_come_in_order_and_by_kind(self, store: Store) -> None:
        drive = started(store)
        for kind in ("failed", "attempt", "succeeded", "attempt"):
            store.commit(drive.outcome(kind=kind))
        with store.reading() as reader:
            assert [row.kind for row in reader.records(THREAD, 1)] == ["failed", "attempt", "succeeded", "attempt"]
            assert [row.seq for row in reader.records_of_kind(THREAD, "attempt")] == [3, 5]
            assert reader.records(THREAD, 2) == []

    def test_what_is_told_of_effects_begins_where_a_lineage_stood_before_it_was_edited(self, store: Store) -> None:
        drive = started(store)
        for kind in ("intent", "step"):
            store.commit(drive.outcome(kind=kind))
        drive.commit()
        for source in ("update", "fork"):
            store.commit(drive.outcome(kind="receipt"))
            drive.commit(source=source)
        store.commit(drive.outcome(kind="doubt"))
        with store.reading() as reader:
            told = [(row.base_seq, row.kind) for row in reader.effects_told(THREAD, 0, 0, 9)]
            assert told == [(1, "intent"), (4, "receipt"), (6, "receipt"), (8, "doubt")]
            assert [row.base_seq for row in reader.effects_told(THREAD, 0, 8, 8)] == [4, 6, 8]
            assert [row.base_seq for row in reader.effects_told(THREAD, 0, 8, 6)] == [4, 6]
            assert len(reader.effects_told(THREAD, 1, 8, 9)) == 4, "another lineage, of which nothing is there"

    def test_seqs_may_have_gaps(self, store: Store) -> None:
        drive = started(store)
        row = checkpoint(THREAD, 10, drive.last)
        commit = drive.ending()
        commit.rows = rows_of(row, 1, row)
        store.commit(commit)
        with store.reading() as reader:
            assert reader.newest(THREAD, "") == row

    def test_every_column_comes_back_as_it_was_written(self, store: Store) -> None:
        drive = started(store)
        odd = drive.commit(
            namespace="naïve/\x00/ns",
            checkpoint_id="é'\"%*",
            lineage=0,
            step=-(2**63),
            created_at=2**63 - 1,
            metadata='{"ключ": "значение 😀"}',
            body=bytes(range(256)) * 500,
        )
        with store.reading() as reader:
            assert reader.newest(THREAD, "naïve/\x00/ns") == odd

    def test_a_query_page_by_page_is_the_whole_list(self, store: Store) -> None:
        for thread_id in ["b", "c", "a"]:
            started(store, thread_id, run_id=f"run-{thread_id}")
        with store.reading() as reader:
            first = reader.threads(ThreadsQuery(limit=2))
            at = (first[-1].updated_at, first[-1].thread_id)
            assert [row.thread_id for row in first] == ["a", "b"]
            assert [row.thread_id for row in reader.threads(ThreadsQuery(before=at))] == ["c"]


class TestRuns:
    """Runs of a thread, last admitted first."""

    def test_runs_come_newest_first_whatever_the_clock_says(self, store: Store) -> None:
        store.commit(started(store).ending())
        for number in (2, 3):
            drive = Drive(store, run_id=f"run-{number}")
            drive.take_over()
            commit = drive.ending()
            commit.run = run_row(THREAD, drive.run_id, started_at=-number, status="finished")
            store.commit(commit)
        with store.reading() as reader:
            assert [run.run_id for run in reader.runs(THREAD)] == ["run-3", "run-2", "run-1"]

    def test_runs_are_read_in_pages(self, store: Store) -> None:
        store.commit(started(store).ending())
        for number in (2, 3, 4):
            drive = Drive(store, run_id=f"run-{number}")
            drive.take_over()
            store.commit(drive.ending())
        store.commit(started(store, "other", run_id="theirs").ending())

        def page(limit: int | None, before: str | None = None) -> list[str]:
            with store.reading() as reader:
                return [run.run_id for run in reader.runs(THREAD, limit, before)]

        assert page(2) == ["run-4", "run-3"]
        assert page(2, "run-3") == ["run-2", "run-1"]
        assert page(None, "run-2") == ["run-1"]
        assert page(0) == page(None, "run-1") == page(None, "theirs") == page(None, "nobody") == []

    def test_a_run_is_written_as_it_shall_be(self, store: Store, clock: FakeClock) -> None:
        drive = started(store)
        commit = drive.step()
        commit.run = run_row(THREAD, "run-1", recoveries=3, progress_seq=2, checkpoint_id="checkpoint-2", error="e")
        store.commit(commit)
        with store.reading() as reader:
            assert reader.run("run-1") == commit.run
