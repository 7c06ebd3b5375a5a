"""The inbox: messages that anybody leaves, in order, each once, and that only the holder of the thread consumes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from stepwell import points
from stepwell.errors import LeaseLostError, MessageConflictError
from stepwell.store import Commit, Deletion, Message, MessageRow, Store
from stepwell.testing.clock import FakeClock
from stepwell.testing.crash import SimulatedCrash, crash_at
from stepwell.testing.store_suite.drive import THREAD, Drive, everything, started

SENDERS = 16


def message(message_id: str, body: bytes = b"body", *, thread_id: str = THREAD, kind: str = "signal") -> Message:
    """Return a message to a thread."""
    return Message(thread_id, message_id, kind, "key", body, 1)


def inbox(store: Store, thread_id: str = THREAD, kind: str | None = None) -> list[MessageRow]:
    with store.reading() as reader:
        return reader.inbox(thread_id, kind)


def ids(store: Store, thread_id: str = THREAD, kind: str | None = None) -> list[str]:
    return [row.message_id for row in inbox(store, thread_id, kind)]


def consuming(commit: Commit, *message_ids: str) -> Commit:
    """Return the commit as one that consumes these messages with its last record."""
    commit.consumed = [(message_id, commit.rows.head_seq) for message_id in message_ids]
    return commit


class TestInbox:
    """INV-1, INV-2, INV-10 for messages."""

    def test_a_message_waits_as_it_was_sent(self, store: Store) -> None:
        started(store)
        row = store.append(message("m"))
        assert inbox(store) == [row]
        assert (row.thread_id, row.message_id, row.kind, row.key, row.body) == (THREAD, "m", "signal", "key", b"body")
        assert (row.ordinal, row.created_at, row.consumed_seq) == (1, 1, 0)

    def test_messages_wait_in_the_order_in_which_they_came(self, store: Store) -> None:
        for message_id in ("c", "a", "b"):
            store.append(message(message_id))
        assert ids(store) == ["c", "a", "b"]

    def test_messages_of_one_kind_are_read_alone(self, store: Store) -> None:
        for message_id, kind in (("a", "signal"), ("b", "cancel"), ("c", "signal")):
            store.append(message(message_id, kind=kind))
        assert ids(store, kind="signal") == ["a", "c"]
        assert ids(store, kind="approval") == []

    def test_a_message_needs_no_lease_and_changes_nothing_of_the_thread(self, store: Store) -> None:
        drive = started(store)
        late = drive.step()
        before = everything(store)
        store.append(message("m"))
        assert everything(store) == before
        store.commit(late)

    def test_a_message_may_come_before_its_thread(self, store: Store) -> None:
        store.append(message("m"))
        assert list(store.verify()) == []
        started(store)
        assert ids(store) == ["m"]
        assert list(store.verify()) == []

    def test_inboxes_of_threads_are_apart(self, store: Store) -> None:
        store.append(message("m", b"one"))
        store.append(message("m", b"other", thread_id="thread-2"))
        assert [row.body for row in inbox(store)] == [b"one"]
        assert [row.body for row in inbox(store, "thread-2")] == [b"other"]

    def test_the_same_message_is_accepted_once(self, store: Store) -> None:
        first = store.append(message("m"))
        again = message("m")
        again.now = 9
        assert store.append(again) == first
        assert inbox(store) == [first]

    @pytest.mark.parametrize("change", ["kind", "key", "body"])
    def test_another_message_under_an_id_is_refused(self, store: Store, change: str) -> None:
        first = store.append(message("m"))
        other = message("m")
        setattr(other, change, b"other" if change == "body" else "other")
        with pytest.raises(MessageConflictError) as caught:
            store.append(other)
        assert (caught.value.fields()["thread_id"], caught.value.fields()["message_id"]) == (THREAD, "m")
        assert inbox(store) == [first]

    def test_a_message_is_consumed_with_the_record_of_it(self, store: Store) -> None:
        drive = started(store)
        for message_id in ("a", "b", "c"):
            store.append(message(message_id))
        commit = consuming(drive.outcome(), "a", "c")
        store.commit(commit)
        assert ids(store) == ["b"]
        with store.reading() as reader:
            row = reader.message(THREAD, "a")
            assert reader.message(THREAD, "nobody") is None
        assert row is not None
        assert (row.consumed_seq, row.body) == (commit.rows.head_seq, b"")
        assert list(store.verify()) == []

    def test_a_consumed_message_sent_again_is_known(self, store: Store) -> None:
        drive = started(store)
        store.append(message("m"))
        store.commit(consuming(drive.outcome(), "m"))
        assert store.append(message("m")).consumed_seq == drive.seq
        assert ids(store) == []
        with pytest.raises(MessageConflictError):
            store.append(message("m", b"other"))

    def test_what_comes_after_a_consumed_message_is_behind_it(self, store: Store) -> None:
        drive = started(store)
        store.append(message("b"))
        store.commit(consuming(drive.outcome(), "b"))
        assert store.append(message("a")).ordinal == 2

    def test_a_lost_lease_cannot_consume(self, store: Store, clock: FakeClock) -> None:
        stale = started(store)
        store.append(message("m"))
        late = consuming(stale.outcome(), "m")
        clock.advance(31.0)
        Drive(store, run_id="run-2").take_over()
        with pytest.raises(LeaseLostError):
            store.commit(late)
        assert ids(store) == ["m"]

    @pytest.mark.parametrize("consumed", [["nobody"], ["m"], ["waits", "m"]])
    def test_what_does_not_wait_is_not_consumed(self, store: Store, consumed: Sequence[str]) -> None:
        drive = started(store)
        for message_id in ("m", "waits"):
            store.append(message(message_id))
        store.commit(consuming(drive.outcome(), "m"))
        commit = consuming(drive.outcome(), *consumed)
        before = everything(store), inbox(store)
        with pytest.raises(ValueError, match="does not wait to be consumed"):
            store.commit(commit)
        assert (everything(store), inbox(store)) == before

    def test_a_deleted_thread_has_no_messages(self, store: Store) -> None:
        started(store)
        store.append(message("m"))
        store.append(message("m", thread_id="thread-2"))
        assert store.delete(Deletion(THREAD, 5))
        assert ids(store) == []
        assert ids(store, "thread-2") == ["m"]
        assert store.append(message("m", b"other")).ordinal == 1

    def test_messages_to_a_thread_that_never_began_are_deleted(self, store: Store) -> None:
        store.append(message("m"))
        assert not store.delete(Deletion(THREAD, 5))
        assert ids(store) == []

    @pytest.mark.parametrize("point", [points.BEGUN, points.WRITTEN])
    def test_a_message_that_is_cut_off_was_not_sent(self, store: Store, point: str) -> None:
        with pytest.raises(SimulatedCrash), crash_at(point):
            store.append(message("m"))
        assert ids(store) == []
        store.append(message("m"))
        assert ids(store) == ["m"]

    def test_a_message_that_is_durable_was_sent(self, store: Store) -> None:
        with pytest.raises(SimulatedCrash), crash_at(points.DURABLE):
            store.append(message("m"))
        assert ids(store) == ["m"]

    @pytest.mark.parametrize("point", [points.BEGUN, points.FENCED, points.WRITTEN])
    def test_a_consumption_that_is_cut_off_leaves_the_message(self, store: Store, point: str) -> None:
        drive = started(store)
        store.append(message("m"))
        before = everything(store)
        with pytest.raises(SimulatedCrash), crash_at(point):
            store.commit(consuming(drive.outcome(), "m"))
        assert everything(store) == before
        assert ids(store) == ["m"]

    def test_messages_from_many_threads_each_get_a_place_and_one_that_is_refused_harms_no_other(
        self, store: Store
    ) -> None:
        store.append(message("taken", b"first"))
        with ThreadPoolExecutor(SENDERS) as pool:
            sent = [pool.submit(store.append, message(f"m{number}")) for number in range(SENDERS)]
            refused = [pool.submit(store.append, message("taken", b"other")) for _ in range(SENDERS)]
        assert [type(future.exception()) for future in refused] == [MessageConflictError] * SENDERS
        assert sorted(future.result().ordinal for future in sent) == [*range(2, SENDERS + 2)]
        assert [row.ordinal for row in inbox(store)] == [*range(1, SENDERS + 2)]
        assert list(store.verify()) == []

    def test_a_message_costs_one_transaction(self, store: Store) -> None:
        started(store)
        before = store.counts.transactions
        store.append(message("m"))
        assert store.counts.transactions == before + 1
