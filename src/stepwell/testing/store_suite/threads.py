"""Listing threads (INV-14): their order, the cursor, and that no status, key or value can select more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepwell.store import Store, ThreadsQuery
from stepwell.testing.store_suite.drive import Drive, started
from stepwell.testing.store_suite.history import HOSTILE


def begun(store: Store, *thread_ids: str, **columns: Any) -> None:
    """Begin these threads, one microsecond after the other, each with one checkpoint."""
    for number, thread_id in enumerate(thread_ids):
        claim = Drive(store, thread_id, run_id=f"run-{thread_id}").claim(**columns)
        claim.now = number
        store.admit(claim)


def ids(store: Store, **query: Any) -> list[str]:
    with store.reading() as reader:
        return [row.thread_id for row in reader.threads(ThreadsQuery(**query))]


class TestThreads:
    """Last changed first; of one moment, by id."""

    def test_threads_come_last_changed_first(self, store: Store) -> None:
        begun(store, "b", "c", "a")
        assert ids(store) == ["a", "c", "b"]
        assert ids(store, limit=2) == ["a", "c"]
        assert ids(store, limit=0) == []

    def test_page_by_page_it_is_the_whole_list(self, store: Store) -> None:
        for thread_id in "dacb":  # all in one moment
            started(store, thread_id, run_id=thread_id)
        begun(store, "z")
        seen: list[str] = []
        before = None
        while True:
            with store.reading() as reader:
                page = reader.threads(ThreadsQuery(before=before, limit=2))
            if not page:
                break
            seen += [row.thread_id for row in page]
            before = (page[-1].updated_at, page[-1].thread_id)
        assert seen == ids(store) == ["a", "b", "c", "d", "z"]

    def test_statuses(self, store: Store) -> None:
        begun(store, "t")
        over = started(store, "u", run_id="run-u")
        store.commit(over.ending("paused"))
        assert ids(store, statuses=["running"]) == ["t"]
        assert ids(store, statuses=["paused", "running"]) == ["u", "t"]
        assert ids(store, statuses=["failed"]) == ids(store, statuses=[]) == []

    def test_a_filter_looks_at_the_newest_checkpoint(self, store: Store) -> None:
        begun(store, "t", metadata=json.dumps({"user": "ann"}))
        drive = started(store, "u", run_id="run-u", graph_id="graph")
        drive.commit(metadata=json.dumps({"user": "ann", "n": 1}), source="update")
        drive.commit(namespace="child:0", metadata=json.dumps({"user": "eve"}))
        assert ids(store, filter={"user": "ann"}) == ["u", "t"]
        assert ids(store, filter={"user": "ann", "n": 1.0}) == ids(store, filter={"source": "update"}) == ["u"]
        assert ids(store, filter={"user": "eve"}) == []

    @pytest.mark.parametrize("value", HOSTILE)
    def test_no_status_key_or_value_selects_more(self, store: Store, value: str) -> None:
        begun(store, "t", metadata=json.dumps({"user": "ann"}))
        assert ids(store, statuses=[value]) == []
        assert ids(store, filter={value: "ann"}) == []
        assert ids(store, filter={"user": value}) == []
        begun(store, "u", metadata=json.dumps({value: "key"}))
        assert ids(store, filter={value: "key"}) == ["u"]
        assert set(ids(store, before=(10, value))) == {"t", "u"}
