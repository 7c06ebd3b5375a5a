"""Effects: each row is written with the record that says how it stands, and never over what was not seen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stepwell import points
from stepwell.errors import LeaseLostError
from stepwell.store import Claim, Commit, Deletion, EffectChange, EffectRow, EffectsQuery, Rows, Store, seal_effect
from stepwell.superstep.effects.layout import Intent, encode_intent
from stepwell.testing.clock import FakeClock
from stepwell.testing.crash import SimulatedCrash, crash_at
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started


def effect(drive: Drive, key: str = "key-1", **columns: Any) -> EffectRow:
    """Return a sealed row of an effect of this drive's thread, said by its head."""
    row = EffectRow(
        key=key,
        thread_id=drive.thread_id,
        scope="position",
        lineage=0,
        position="position-1",
        node="pay",
        activation=0,
        call_id="/charge/0",
        name="charge",
        status="intent",
        epoch=drive.epoch,
        run_id=drive.run_id,
        fingerprint="f",
        seq=drive.seq,
        attempts=1,
        started_at=1,
        finished_at=0,
        body=b"",
        digest=b"",
    )
    return seal_effect(row._replace(**columns))


_INTENT = Intent("", "charge", "/charge/0", "", "f", b"", "charge()", "charge()", {}, b"", "", 1, 1)


def saying(drive: Drive, key: str = "key-1", seen: tuple[bytes, ...] | None = (), **columns: Any) -> Commit:
    """Return a commit of one record and the effect's row that it makes, without landing it."""
    status = columns.get("status", "intent")
    said = {"body": encode_intent(_INTENT._replace(key=key))} if status == "intent" else {}
    commit = drive.outcome(kind=status, **said)
    commit.rows = commit.rows._replace(effects=[EffectChange(effect(drive, key, **columns), seen)])
    return commit


def rows(store: Store, key: str = "key-1") -> list[EffectRow]:
    with store.reading() as reader:
        return reader.effect(key)


def listed(store: Store, **query: Any) -> list[tuple[str, str]]:
    """Return thread and key of the effects a query selects, two a page."""
    found: list[tuple[str, str]] = []
    after = None
    while True:
        with store.reading() as reader:
            page = reader.effects(EffectsQuery(**query, after=after, limit=2))
        found += [(row.thread_id, row.key) for row in page]
        if len(page) < 2:
            return found
        after = (page[-1].thread_id, page[-1].seq, page[-1].key)


class TestEffects:
    """INV-1, INV-2, INV-7: an effect's row says what its record says."""

    def test_a_row_comes_with_its_record_and_is_replaced_with_the_next(self, store: Store) -> None:
        drive = started(store)
        store.commit(saying(drive))
        (intent,) = rows(store)
        assert intent.status == "intent"
        done = saying(drive, seen=(intent.digest,), status="done", finished_at=2)
        store.commit(done)
        assert rows(store) == [done.rows.effects[0].row]
        assert done.refused == ()
        assert list(store.verify()) == []

    def test_a_stale_writer_leaves_the_row_as_it_is(self, store: Store, clock: FakeClock) -> None:
        drive = started(store)
        store.commit(saying(drive))
        before = rows(store)
        clock.advance(31.0)
        Drive(store, run_id="run-2").take_over()
        late = saying(drive, seen=(before[0].digest,), status="done")
        with pytest.raises(LeaseLostError):
            store.commit(late)
        assert rows(store) == before

    @pytest.mark.parametrize("point", [points.BEGUN, points.FENCED, points.WRITTEN])
    def test_a_write_that_is_cut_off_changes_no_row(self, store: Store, point: str) -> None:
        drive = started(store)
        commit = saying(drive)
        with pytest.raises(SimulatedCrash), crash_at(point):
            store.commit(commit)
        assert rows(store) == []
        store.commit(commit)
        assert len(rows(store)) == 1

    def test_effects_at_a_position_are_found_in_all_lineages(self, store: Store) -> None:
        drive = started(store)
        store.commit(saying(drive, "a"))
        store.commit(saying(drive, "b", lineage=1))
        store.commit(saying(drive, "c", position="position-2"))
        other = started(store, "thread-2", run_id="run-2")
        store.commit(saying(other, "d"))
        with store.reading() as reader:
            assert [row.key for row in reader.effects_at(THREAD, "position-1")] == ["b", "a"]
            assert reader.effects_at("thread-3", "position-1") == []

    def test_effects_are_listed_page_by_page(self, store: Store) -> None:
        for number in (1, 2):
            drive = started(store, f"thread-{number}", run_id=f"run-{number}")
            for key, status in zip("abcde", ("intent", "done", "failed", "doubt", "compensated"), strict=True):
                store.commit(saying(drive, f"{key}{number}", status=status))
        of_first = [("thread-1", f"{key}1") for key in "abcde"]
        of_second = [("thread-2", f"{key}2") for key in "abcde"]
        assert listed(store, thread_id="thread-1") == of_first
        assert listed(store) == of_first + of_second
        assert listed(store, thread_id="thread-2", in_doubt=True) == [of_second[0], of_second[3]]
        assert listed(store, in_doubt=True) == [of_first[0], of_first[3], of_second[0], of_second[3]]
        assert listed(store, thread_id="thread-3") == listed(store, thread_id="thread-3", in_doubt=True) == []

    def test_a_row_of_another_thread_is_refused(self, store: Store) -> None:
        drive = started(store)
        with pytest.raises(ValueError, match="thread-2"):
            store.commit(saying(drive, thread_id="thread-2"))
        assert rows(store) == []


class TestSharedKeys:
    """INV-7: of two threads that want one key at once, one gets it, and the other is told."""

    @pytest.mark.parametrize("scope", ["global", "thread"])
    def test_the_slower_one_is_told_and_its_commit_lands(self, store: Store, scope: str) -> None:
        first, second = started(store), started(store, "thread-2", run_id="run-2")
        fast, slow = saying(first, scope=scope), saying(second, scope=scope)
        store.commit(fast)
        store.queue(slow).result()
        assert (fast.refused, slow.refused) == ((), (slow.rows.effects[0].row.digest,))
        assert rows(store) == [fast.rows.effects[0].row]
        second.commit()  # its head has moved on: it goes on
        assert list(store.verify()) == []

    def test_who_has_seen_the_other_may_go_on_under_the_key(self, store: Store) -> None:
        first, second = started(store), started(store, "thread-2", run_id="run-2")
        store.commit(saying(first, scope="global", status="doubt"))
        (seen,) = rows(store)
        store.commit(saying(second, seen=(seen.digest,), scope="global"))
        late = saying(first, seen=(seen.digest,), scope="global", status="done")
        store.commit(late)
        assert late.refused == (late.rows.effects[0].row.digest,)
        assert [row.thread_id for row in rows(store)] == ["thread-2"]

    def test_of_two_rows_for_one_key_in_one_commit_the_second_alone_is_refused(self, store: Store) -> None:
        drive = started(store)
        commit = saying(drive)
        mine, again, other = (effect(drive, key, call_id=f"/charge/{n}") for n, key in enumerate(("k", "k", "other")))
        commit.rows = commit.rows._replace(effects=[EffectChange(row, ()) for row in (mine, again, other)])
        store.commit(commit)
        assert commit.refused == (again.digest,)
        assert (rows(store, "k"), rows(store, "other")) == ([mine], [other])

    def test_threads_that_share_a_key_have_a_row_each(self, store: Store) -> None:
        first, second = started(store), started(store, "thread-2", run_id="run-2")
        store.commit(saying(first, status="done"))
        store.commit(saying(second, seen=None, status="done"))
        assert [row.thread_id for row in rows(store)] == [THREAD, "thread-2"]
        seen = tuple(row.digest for row in rows(store))
        store.commit(saying(second, seen=seen, status="compensated"))
        assert [row.status for row in rows(store)] == ["done", "compensated"]

    def test_of_many_at_once_one_gets_the_key(self, store: Store) -> None:
        drives = [started(store, f"thread-{n}", run_id=f"run-{n}") for n in range(8)]
        commits = [saying(drive, scope="global") for drive in drives]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(store.commit, commits))
        (row,) = rows(store)
        refused = {commit.thread_id for commit in commits if commit.refused}
        assert refused == {drive.thread_id for drive in drives} - {row.thread_id}


class TestForgottenEffects:
    """Deleting a thread takes its effects with it, but not what is everybody's."""

    def test_a_deleted_thread_leaves_its_global_effects(self, store: Store) -> None:
        drive, other = started(store), started(store, "thread-2", run_id="run-2")
        store.commit(saying(drive, "own", status="done"))
        store.commit(saying(drive, "everybody's", scope="global", status="done", body=b"receipt"))
        store.commit(saying(other, "other", status="done"))
        store.delete(Deletion(THREAD, 5))
        assert rows(store, "own") == []
        assert [row.body for row in rows(store, "everybody's")] == [b"receipt"]
        assert len(rows(store, "other")) == 1
        assert list(store.verify()) == []


class TestWholeClaims:
    """A claim that is about effects alone is written where all their rows are as seen, or not at all."""

    def test_a_claim_over_what_was_seen_writes_its_record_and_the_row(self, store: Store) -> None:
        claim = deciding(store)
        assert store.admit(claim) is not None
        assert [row.status for row in rows(store)] == ["done"]

    def test_a_claim_over_anything_else_writes_nothing(self, store: Store) -> None:
        claim = deciding(store)
        [change] = claim.rows.effects
        claim.rows = claim.rows._replace(effects=[change._replace(seen=(b"x" * 16,))])
        before = everything(store)
        assert store.admit(claim) is None
        assert (everything(store), [row.status for row in rows(store)]) == (before, ["doubt"])


def deciding(store: Store) -> Claim:
    """Return a claim of a free thread that settles an effect in doubt."""
    drive = started(store)
    store.commit(saying(drive, status="doubt"))
    store.commit(drive.ending("paused"))
    with store.reading() as reader:
        seen = reader.thread(THREAD)
    claim = drive.claim(seen, rows=False)
    record = drive.add_record(kind="resolved")
    change = EffectChange(effect(drive, status="done"), tuple(row.digest for row in rows(store)))
    claim.rows = Rows(record.seq, record.digest, 1, [], [record], (), [change])
    claim.run, claim.lease_seconds, claim.whole = None, None, True
    return claim
