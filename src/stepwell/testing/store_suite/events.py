"""The logs of runs: where an event stands, that it lands with what it tells of, and that none can be lost unseen."""

from __future__ import annotations

import pytest

from stepwell.errors import LeaseLostError
from stepwell.store import NO_DIGEST, Commit, EventDraft, EventRow, Store
from stepwell.testing.clock import FakeClock
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, run_row, started


def telling(commit: Commit, *kinds: str) -> Commit:
    """Return the commit with these events of its run."""
    drafts = [EventDraft(commit.run_id, kind, at, kind.encode()) for at, kind in enumerate(kinds)]
    commit.rows = commit.rows._replace(events=drafts)
    return commit


def log_of(store: Store, run_id: str = "run-1", after: int = 0, limit: int | None = None) -> list[EventRow]:
    with store.reading() as reader:
        return reader.events(run_id, after, limit)


def kinds(store: Store, run_id: str = "run-1", after: int = 0, limit: int | None = None) -> list[str]:
    return [row.kind for row in log_of(store, run_id, after, limit)]


class TestEventLog:
    """INV-1, INV-2, INV-10 for events: a part of the commit they came with, numbered and chained."""

    def test_a_run_without_events_has_an_empty_log(self, store: Store) -> None:
        started(store).commit()
        assert log_of(store) == []
        assert log_of(store, "nobody") == []

    def test_events_land_with_the_commit_that_carries_them(self, store: Store) -> None:
        drive = started(store)
        store.commit(telling(drive.step(), "one", "two"))
        store.commit(telling(drive.step(), "three"))
        rows = log_of(store)
        assert [(row.ordinal, row.kind, row.created_at, row.body) for row in rows] == [
            (1, "one", 0, b"one"),
            (2, "two", 1, b"two"),
            (3, "three", 0, b"three"),
        ]
        assert {(row.run_id, row.thread_id) for row in rows} == {("run-1", THREAD)}

    def test_each_event_names_the_one_before_it(self, store: Store) -> None:
        drive = started(store)
        for kind in ("one", "two", "three"):
            store.commit(telling(drive.step(), kind))
        rows = log_of(store)
        assert [row.previous_digest for row in rows] == [NO_DIGEST, *(row.digest for row in rows[:-1])]

    def test_a_log_is_read_from_an_offset(self, store: Store) -> None:
        store.commit(telling(started(store).step(), "one", "two", "three"))
        assert kinds(store, after=1) == ["two", "three"]
        assert kinds(store, after=1, limit=1) == ["two"]
        assert kinds(store, after=3) == kinds(store, after=9) == kinds(store, limit=0) == []

    def test_an_admission_carries_the_first_events(self, store: Store) -> None:
        claim = Drive(store).claim()
        claim.rows = claim.rows._replace(events=[EventDraft("run-1", "one", 1, b"")])
        store.admit(claim)
        assert kinds(store) == ["one"]
        with store.reading() as reader:
            run = reader.run("run-1")
        assert run is not None
        assert run.events == 1

    def test_a_run_that_is_written_counts_its_events(self, store: Store) -> None:
        drive = started(store)
        store.commit(telling(drive.step(), "one", "two"))
        store.commit(telling(drive.ending(), "three"))
        with store.reading() as reader:
            run = reader.run("run-1")
        assert run is not None
        assert run.events == 3

    def test_a_stale_writer_adds_no_event(self, store: Store, clock: FakeClock) -> None:
        drive = started(store)
        late = telling(drive.step(), "late")
        clock.advance(31.0)
        Drive(store, run_id="run-2").take_over()
        before = everything(store)
        with pytest.raises(LeaseLostError):
            store.commit(late)
        assert log_of(store) == []
        assert everything(store) == before

    def test_a_takeover_goes_on_with_the_log(self, store: Store, clock: FakeClock) -> None:
        store.commit(telling(started(store).step(), "one"))
        clock.advance(31.0)
        heir = Drive(store)
        heir.take_over()
        store.commit(telling(heir.step(), "two"))
        assert [(row.ordinal, row.kind) for row in log_of(store)] == [(1, "one"), (2, "two")]

    def test_logs_of_runs_are_apart(self, store: Store) -> None:
        store.commit(telling(started(store).step(), "one"))
        store.commit(telling(started(store, "other", run_id="run-2").step(), "theirs"))
        assert (kinds(store), kinds(store, "run-2")) == (["one"], ["theirs"])

    def test_the_end_of_a_dead_run_is_told_in_its_own_log(self, store: Store, clock: FakeClock) -> None:
        store.commit(telling(started(store).step(), "one"))
        clock.advance(31.0)
        with store.reading() as reader:
            seen = reader.thread(THREAD)
        claim = Drive(store, run_id="run-2").claim(seen, rows=False)
        claim.ended = run_row(THREAD, "run-1", status="failed")
        claim.rows = claim.rows._replace(
            events=[EventDraft("run-1", "ended", 1, b""), EventDraft("run-2", "began", 1, b"")]
        )
        assert store.admit(claim) is not None
        assert (kinds(store), kinds(store, "run-2")) == (["one", "ended"], ["began"])
        with store.reading() as reader:
            assert [(run.run_id, run.events) for run in reader.runs(THREAD)] == [("run-2", 1), ("run-1", 2)]
        assert list(store.verify()) == []
