"""The journal: records of steps and effects, newest first, and none of them missing."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.errors import CorruptRecordError
from stepwell.store import JournalQuery, Store
from stepwell.testing.store_suite.drive import THREAD, Drive, started


def kept(store: Store) -> Drive:
    """Return a drive with steps and an outcome on its first checkpoint, and a step on its second."""
    drive = started(store)
    for kind in ("step", "succeeded", "intent", "receipt"):
        store.commit(drive.outcome(kind=kind))
    drive.commit()
    store.commit(drive.outcome(kind="step"))
    return drive


def listed(store: Store, thread_id: str = THREAD, **query: Any) -> list[tuple[int, str]]:
    with store.reading() as reader:
        return [(row.seq, row.kind) for row in reader.journal(JournalQuery(thread_id, **query))]


class TestJournal:
    """What nodes did, apart from what became of them."""

    def test_it_is_listed_newest_first_without_outcomes(self, store: Store) -> None:
        kept(store)
        assert listed(store) == [(7, "step"), (5, "receipt"), (4, "intent"), (2, "step")]
        assert listed(store, "another") == []

    def test_before_and_limit(self, store: Store) -> None:
        kept(store)
        assert listed(store, before_seq=7, limit=2) == [(5, "receipt"), (4, "intent")]
        assert listed(store, before_seq=4) == [(2, "step")]
        assert listed(store, limit=0) == []

    def test_of_one_checkpoint(self, store: Store) -> None:
        kept(store)
        assert listed(store, base_seq=6) == [(7, "step")]
        assert listed(store, base_seq=5) == []

    def test_of_lineages_each_up_to_a_seq(self, store: Store) -> None:
        drive = kept(store)
        drive.lineages = 2
        drive.commit(lineage=1)
        store.commit(drive.outcome(kind="step"))
        assert listed(store, line=[(1, 99), (0, 4)]) == [(9, "step"), (4, "intent"), (2, "step")]
        assert listed(store, line=[(1, 8)]) == []
        assert listed(store, line=[]) == []

    def test_a_record_that_is_missing_before_one_of_them_is_noticed(self, store: Store) -> None:
        """INV-10"""
        drive = started(store)
        store.commit(drive.outcome(kind="step"))
        assert drive.last is not None
        drive.ordinals[drive.last.seq] += 1  # one is lost
        store.commit(drive.outcome(kind="step"))
        assert listed(store, limit=1) == [(3, "step")]
        for limit in (None, 2):
            with pytest.raises(CorruptRecordError, match="are missing"):
                listed(store, limit=limit)
