"""History and isolation (INV-14): what a filter selects, and that no value can select more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepwell.store import CheckpointRow, HistoryQuery, Store
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started

HOSTILE = [
    "x' or '1'='1",
    'x" or ""="',
    "%",
    "_",
    "*",
    "?",
    "thread-_",
    "thread-%",
    "THREAD-1",
    "thread-1 ",
    "thread-1\x00",
    "thread-1\x00x",
    "\x00",
    "",
    ":thread_id",
    "$.a",
    "; drop table threads; --",
    "ｔｈｒｅａｄ-1",
    "thread-1\u0301",
    "😀",
    "a" * 5000,
]


def told(store: Store, metadata: list[dict[str, Any] | None]) -> Drive:
    """Return a drive with one more checkpoint per metadata."""
    drive = started(store)
    for given in metadata:
        drive.commit(metadata="" if given is None else json.dumps(given))
    return drive


def seqs(store: Store, **query: Any) -> list[int]:
    with store.reading() as reader:
        return [row.seq for row in reader.history(HistoryQuery(THREAD, **query))]


class TestHistory:
    """Newest first by seq, filtered by equality, limited after filtering."""

    def test_history_is_newest_first(self, store: Store) -> None:
        told(store, [None, None])
        assert seqs(store) == [3, 2, 1]

    def test_before_and_limit(self, store: Store) -> None:
        told(store, [None] * 5)
        assert seqs(store, before_seq=5) == [4, 3, 2, 1]
        assert seqs(store, before_seq=5, limit=2) == [4, 3]
        assert seqs(store, limit=0) == []

    def test_history_is_of_one_namespace(self, store: Store) -> None:
        drive = started(store)
        drive.commit(namespace="child:0")
        assert seqs(store) == [1]
        assert seqs(store, namespace="child:0") == [2]

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            ({"source": "update"}, [2]),
            ({"step": 1}, [3]),
            ({"run_id": "run-1"}, [3, 2, 1]),
            ({"lineage": 0, "source": "loop"}, [3, 1]),
            ({"source": "update", "step": 1}, []),
            ({"step": "1"}, []),
            ({"source": None}, []),
        ],
    )
    def test_filters_on_columns(self, store: Store, wanted: dict[str, Any], expected: list[int]) -> None:
        drive = started(store)
        drive.commit(source="update")
        drive.commit()
        assert seqs(store, filter=wanted) == expected

    @pytest.mark.parametrize(
        ("wanted", "expected"),
        [
            ({"user": "ann"}, [3, 2]),
            ({"user": "ann", "n": 1}, [2]),
            ({"n": 1.0}, [2]),
            ({"n": True}, [3]),
            ({"n": "1"}, [4]),
            ({"none": None}, [4]),
            ({"missing": None}, []),
            ({"deep": {"b": [1, {"c": "é"}], "a": 1}}, [5]),
            ({"deep": {"a": 1}}, []),
            ({"a.b": 1}, [6]),
            ({"$.user": "ann"}, []),
            ({"us*": "ann"}, []),
            ({"": "empty"}, [6]),
            ({"big": 2**80}, [6]),
            ({"big": 2**80 + 1}, []),
        ],
    )
    def test_filters_on_metadata(self, store: Store, wanted: dict[str, Any], expected: list[int]) -> None:
        told(
            store,
            [
                {"user": "ann", "n": 1},
                {"user": "ann", "n": True},
                {"user": "bob", "n": "1", "none": None},
                {"deep": {"a": 1, "b": [1, {"c": "é"}]}},
                {"a.b": 1, "": "empty", "big": 2**80},
                None,
            ],
        )
        assert seqs(store, filter=wanted) == expected

    def test_a_limit_counts_matches(self, store: Store) -> None:
        told(store, [{"keep": n % 3 == 0} for n in range(12)])
        assert seqs(store, filter={"keep": True}, limit=2) == [11, 8]


class TestIsolation:
    """INV-14: no thread id, namespace, filter key or value reaches another's data."""

    @pytest.mark.parametrize("thread_id", HOSTILE)
    def test_a_thread_id_reads_its_own_thread_only(self, store: Store, thread_id: str) -> None:
        mine = started(store)
        before = everything(store)
        assert everything(store, thread_id) == (None, None, [], [], [])
        theirs = started(store, thread_id, run_id="run-2")
        theirs.commit(records=1)
        assert everything(store) == before
        assert everything(store, thread_id)[1] == theirs.last
        assert mine.last != theirs.last
        assert list(store.verify()) == []

    @pytest.mark.parametrize("namespace", [value for value in HOSTILE if value])
    def test_a_namespace_reads_its_own_rows_only(self, store: Store, namespace: str) -> None:
        started(store)
        with store.reading() as reader:
            assert reader.newest(THREAD, namespace) is None
            assert reader.checkpoint(THREAD, namespace, "checkpoint-1") is None
            assert reader.history(HistoryQuery(THREAD, namespace=namespace)) == []

    @pytest.mark.parametrize("value", HOSTILE)
    def test_a_filter_value_matches_itself_only(self, store: Store, value: str) -> None:
        drive = told(store, [{"user": "ann"}, {value: "key"}, {"user": value}])
        third, fourth = drive.seq - 1, drive.seq
        assert seqs(store, filter={"user": value}) == [fourth]
        assert seqs(store, filter={value: "key"}) == [third]
        assert seqs(store, filter={value: "ann"}) == []
        assert seqs(store, filter={"source": value}) == []
        assert seqs(store, filter={"run_id": value}) == []

    @pytest.mark.parametrize("value", HOSTILE)
    def test_an_id_finds_itself_only(self, store: Store, value: str) -> None:
        started(store).commit()
        with store.reading() as reader:
            found: CheckpointRow | None = reader.checkpoint(THREAD, "", value)
            assert found is None
            assert reader.records_of_kind(THREAD, value) == []
            assert reader.run(value) is None
