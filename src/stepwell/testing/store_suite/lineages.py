"""Lineages: where each was forked and where it ends, found by its number, however long the others are."""

from __future__ import annotations

from stepwell.store import LineageRow, Store
from stepwell.testing.store_suite.drive import THREAD, Drive, started


def forked(drive: Drive, lineage: int, at: int) -> None:
    """Open a lineage at a checkpoint, with one checkpoint of its own."""
    with drive.store.reading() as reader:
        (drive.last,) = reader.checkpoints(drive.thread_id, [at])
    drive.lineages = max(drive.lineages, lineage + 1)
    drive.commit(lineage=lineage, source="fork")


def line(lineage: int, parent_lineage: int | None, parent_seq: int | None, head_seq: int) -> LineageRow:
    return LineageRow(THREAD, lineage, parent_lineage, parent_seq, head_seq)


class TestLineages:
    """INV-9: a lineage's head is its newest checkpoint by seq."""

    def test_a_thread_that_never_branched_has_one(self, store: Store) -> None:
        drive = started(store)
        drive.commit(records=1)
        with store.reading() as reader:
            assert reader.lineages(THREAD) == [line(0, None, None, 3)]
            assert reader.head_seq(THREAD, "", 0) == 3
            assert reader.head_seq(THREAD, "", 1) is None
            assert reader.lineages("another") == []
            assert reader.head_seq("another", "", 0) is None

    def test_forks_of_forks_and_heads_that_move_on(self, store: Store) -> None:
        drive = started(store)
        drive.commit()
        forked(drive, 1, at=1)  # 3
        drive.commit(lineage=1)  # 4
        forked(drive, 2, at=3)  # 5
        with store.reading() as reader:
            assert reader.lineages(THREAD) == [line(0, None, None, 2), line(1, 0, 1, 4), line(2, 1, 3, 5)]
            (drive.last,) = reader.checkpoints(THREAD, [2])
        drive.commit(lineage=0)  # 6
        drive.commit(lineage=0)  # 7
        with store.reading() as reader:
            assert reader.lineages(THREAD) == [line(0, None, None, 7), line(1, 0, 1, 4), line(2, 1, 3, 5)]
            heads = [reader.newest(THREAD, "", lineage) for lineage in range(4)]
            assert [head and head.seq for head in heads] == [7, 4, 5, None]
            assert [head and head.lineage for head in heads] == [0, 1, 2, None]
        assert list(store.verify()) == []

    def test_many_branches_in_one_transaction(self, store: Store) -> None:
        drive = started(store)
        first = drive.step()
        second = drive.step(lineage=1)
        drive.lineages = 3
        third = drive.step(lineage=2)
        rows = [*first.rows.checkpoints, *second.rows.checkpoints, *third.rows.checkpoints]
        first.rows = third.rows._replace(checkpoints=rows)
        store.commit(first)
        with store.reading() as reader:
            assert reader.lineages(THREAD) == [line(0, None, None, 2), line(1, 0, 2, 3), line(2, 1, 3, 4)]

    def test_a_thread_that_never_branched_pays_nothing_for_it(self, store: Store) -> None:
        drive = started(store)
        before = store.counts.statements
        drive.commit()
        assert store.counts.statements <= before + 4  # begin, fence, checkpoint, commit: or one for all of them

    def test_child_namespaces_have_heads_too(self, store: Store) -> None:
        drive = started(store)
        drive.commit(namespace="child:0")
        drive.lineages = 2
        drive.commit(namespace="child:0", lineage=1)
        with store.reading() as reader:
            assert reader.head_seq(THREAD, "child:0", 0) == 2
            assert reader.head_seq(THREAD, "child:0", 1) == 3
            assert reader.lineages(THREAD) == [line(0, None, None, 1)]
