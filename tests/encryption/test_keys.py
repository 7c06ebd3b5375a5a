"""Where data keys come from, who may open them, and when they are gone."""

import copy
import logging
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stepwell import (
    DatabaseEncryptedError,
    Encryption,
    InMemorySaver,
    InvalidConfigError,
    InvalidKeyError,
    KeyContext,
    KeyServiceError,
    LocalKeys,
    LostKeyError,
    MessageConflictError,
    MissingKeyError,
    PlaintextDatabaseError,
    PlaintextRecordError,
    SqliteSaver,
    SqliteStore,
    WrongKeyError,
)
from stepwell.stores.encrypted import filtering
from tests.encryption.conftest import begin, behind, encrypted, opened, talk
from tests.runtime.graphs import thread


class Service:
    """A key service of a user's own: it counts what it is asked, and can be down."""

    def __init__(self) -> None:
        self.keys = LocalKeys({"held elsewhere": Encryption.new_key()})
        self.asked: list[tuple[str, str]] = []
        self.down = False

    def key_id(self, context: KeyContext) -> str:
        return self.keys.key_id(context)

    def wrap(self, key_id: str, data_key: bytes, context: KeyContext) -> bytes:
        self._note("wrap", context)
        return self.keys.wrap(key_id, data_key, context)

    def unwrap(self, key_id: str, wrapped: bytes, context: KeyContext) -> bytes:
        self._note("unwrap", context)
        return self.keys.unwrap(key_id, wrapped, context)

    def _note(self, verb: str, context: KeyContext) -> None:
        if self.down:
            raise ConnectionError("no route, token s3cr3t")
        self.asked.append((verb, context.thread_id))


def keys_of(saver: SqliteSaver) -> dict[str, tuple[bytes, str]]:
    """Return the name of each data key and the id of the key that wrapped it."""
    with saver.store.reading() as reader:
        return {row.thread_id: (row.name, row.key_id) for row in reader.keys(None, 100)}


# -- making and finding keys ------------------------------------------------------------------------------------------


def test_a_service_is_asked_once_a_thread_and_process(path: Path) -> None:
    service = Service()
    with SqliteSaver(path, encryption=Encryption(service)) as saver:
        graph = begin(saver, "t")
        graph.update_state(thread(), {"log": ["x"]})
        graph.invoke({"log": []}, thread(), on_pending="discard")
        assert service.asked == [("wrap", ""), ("unwrap", ""), ("wrap", "t"), ("unwrap", "t")]
    with SqliteSaver(path, encryption=Encryption(service)) as saver:
        for _ in range(3):
            talk(saver).get_state(thread())
        assert service.asked[4:] == [("unwrap", ""), ("unwrap", "t")]


def test_a_service_that_is_down_stops_a_run_before_anything_is_written(path: Path) -> None:
    service = Service()
    with SqliteSaver(path, encryption=Encryption(service)) as saver:
        service.down = True
        with pytest.raises(KeyServiceError, match="ConnectionError") as caught:
            begin(saver, "t")
        assert "s3cr3t" not in str(caught.value)
        assert list(saver.threads()) == []
        service.down = False
        begin(saver, "t")
        assert [summary.status for summary in saver.threads()] == ["paused"]


def test_the_key_bound_keeps_no_more_than_told_and_loses_nothing(path: Path, key: bytes) -> None:
    with opened(path, key, cached_keys=2) as saver:
        graph = begin(saver, *"abcdef")
        for name in "abcdef":
            graph.invoke({"log": ["again"]}, thread(name), on_pending="discard")
            assert graph.get_state(thread(name)).values["log"][0] == f"in {name}"
        ring: Any = encrypted(saver).keys
        assert len(ring._held) <= 2 >= len(ring._unwrapped)
        assert list(saver.store.verify()) == []


def test_threads_that_begin_at_once_in_two_savers_have_one_key_each(path: Path, key: bytes) -> None:
    """Admissions, and messages to threads that have not begun: whoever is slower takes the other's key."""
    with opened(path, key) as one, opened(path, key) as two, ThreadPoolExecutor(8) as pool:
        graphs = [talk(one), talk(two)]
        for number in range(6):
            at = thread(f"t{number}")
            sent = [pool.submit(graph.signal, at, "k", index) for index, graph in enumerate(graphs * 2)]
            begun = [pool.submit(graph.invoke, {"log": []}, at, on_pending="discard") for graph in graphs]
            assert len({future.result() for future in sent}) == 4
            assert any(future.exception() is None for future in begun)
        for saver in (one, two):
            assert list(saver.store.verify()) == []
            assert keys_of(saver).keys() == {"", *(f"t{number}" for number in range(6))}


def test_a_thread_that_another_process_deleted_and_began_anew_has_its_new_key(path: Path, key: bytes) -> None:
    with opened(path, key) as mine, opened(path, key) as other:
        begin(mine, "t")
        before = keys_of(mine)["t"]
        other.delete_thread("t")
        begin(other, "t")
        talk(mine).update_state(thread(), {"log": ["mine"]})
        assert keys_of(mine)["t"] != before
        assert talk(other).get_state(thread()).values == {"log": ["in t", "a", "mine"]}
        other.delete_thread("t")
        talk(mine).signal(thread(), "k", "early")
        begin(other, "t")
        assert list(other.store.verify()) == list(mine.store.verify()) == []


# -- keys that do not fit ---------------------------------------------------------------------------------------------


def test_a_wrong_key_is_found_out_when_the_saver_is_made(path: Path, key: bytes) -> None:
    with opened(path, key) as saver:
        begin(saver, "t")
    with pytest.raises(WrongKeyError, match="'k' does not open the data key of the database"):
        opened(path, Encryption.new_key())
    with pytest.raises(MissingKeyError, match="'k', which was not given"):
        SqliteSaver(path, encryption=Encryption({"other": key}))
    with opened(path, key) as saver:
        assert talk(saver).get_state(thread()).next == ("q",)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda key: {"k": key[:31]}, "'k' is not 32 bytes"),
        (lambda key: {"k": key.hex()}, "'k' is not 32 bytes"),
        (lambda key: {key: "k"}, "The id of a key is text"),
        (lambda key: {"": key}, "The id of a key is text"),
        (lambda key: {}, "Of 0 keys"),
        (lambda key: {"a": key, "b": key}, "Of 2 keys"),
        (lambda key: key, "not a bytes"),
    ],
)
def test_what_is_no_key_is_refused_without_showing_it(key: bytes, given: Any, said: str) -> None:
    with pytest.raises(InvalidKeyError, match=said) as caught:
        Encryption(given(key))
    assert key.hex() not in str(caught.value)
    assert repr(key)[2:-1] not in str(caught.value)


def test_keys_are_in_no_text_no_log_no_copy_and_no_pickle(path: Path, key: bytes, caplog: Any) -> None:
    with caplog.at_level(logging.DEBUG), opened(path, key) as saver:
        begin(saver, "t")
        held: Any = encrypted(saver).keys.held("t")
        said = [repr(encrypted(saver).encryption), repr(encrypted(saver).encryption.service), repr(held), caplog.text]
        for each in (encrypted(saver).encryption, encrypted(saver).encryption.service, held.key):
            for leave in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(TypeError, match="pickled"):
                    leave(each)
    assert not [text for text in said if key.hex() in text or repr(key)[2:-1] in text]


# -- without a key ----------------------------------------------------------------------------------------------------


def test_without_a_key_threads_can_be_listed_verified_and_deleted_and_nothing_else(path: Path, key: bytes) -> None:
    with opened(path, key) as saver:
        begin(saver, "t", "u")
    with SqliteSaver(path) as locked, SqliteStore(locked) as items:
        listed = list(locked.threads())
        assert [(each.thread_id, each.status) for each in listed] == [("u", "paused"), ("t", "paused")]
        assert "encrypted" in (listed[0].damage or "")
        assert list(locked.store.verify()) == []
        assert {weight.thread_id for weight in locked.stats().threads} == {"t", "u"}
        assert locked.export_thread("t", path.with_suffix(".thread")).rows > 0
        graph = talk(locked)
        for refused in (
            lambda: graph.invoke({"log": []}, thread("new")),
            lambda: graph.invoke(None, thread()),
            lambda: graph.get_state(thread()),
            lambda: graph.signal(thread(), "k", 1),
            lambda: graph.update_state(thread(), {"log": []}),
            lambda: locked.copy_thread("t", "v"),
            lambda: list(locked.list(None)),
            lambda: locked.runs("t"),
            lambda: items.put(("a",), "k", {}),
        ):
            with pytest.raises(DatabaseEncryptedError, match="no key was given"):
                refused()
        assert "no key was given" in str(locked.read_raw(thread()).faults)
        locked.delete_thread("t")
        assert [each.thread_id for each in locked.threads()] == ["u"]
        with pytest.raises(DatabaseEncryptedError, match="no key was given"):
            locked.rekey()
    with InMemorySaver() as plain, pytest.raises(InvalidConfigError, match="is not encrypted, and has no data keys"):
        plain.rekey()


# -- moving a database over -------------------------------------------------------------------------------------------


def test_a_plaintext_database_is_refused_unless_it_is_being_moved_over(path: Path, key: bytes) -> None:
    with SqliteSaver(path) as plain:
        begin(plain, "old", "other").signal(thread("old"), "k", "v", id="s")
    with pytest.raises(PlaintextDatabaseError):
        opened(path, key)
    with opened(path, key, accept_plaintext=True) as saver:
        graph = talk(saver)
        assert graph.get_state(thread("old")).values == {"log": ["in old", "a"]}
        assert graph.signal(thread("old"), "k", "v", id="s") == "s", "the same message again"
        with pytest.raises(MessageConflictError):
            graph.signal(thread("old"), "k", "another", id="s")
        saver.copy_thread("old", "moved")
        graph.update_state(thread("other"), {"log": ["from here on"]})
        assert list(saver.store.verify()) == []
        saver.delete_thread("old")
    with opened(path, key) as saver:
        assert talk(saver).get_state(thread("moved")).values == {"log": ["in old", "a"]}
        with pytest.raises(PlaintextRecordError, match="thread 'other'"):
            list(talk(saver).get_state_history(thread("other")))


# -- rotation ---------------------------------------------------------------------------------------------------------


def test_a_rotation_rewrites_no_row_but_those_of_keys(path: Path, key: bytes) -> None:
    """And the old key can go afterwards."""
    new = Encryption.new_key()
    with opened(path, key) as saver:
        begin(saver, "t", "u")
    with behind(path) as connection:
        before = {table: connection.execute(f"select * from {table}").fetchall() for table in TABLES}
    with SqliteSaver(path, encryption=Encryption({"k": key, "new": new}, current="new")) as saver:
        done = saver.rekey()
        assert (done.rewrapped, done.current, done.failed) == (3, 0, {})
        assert saver.rekey().rewrapped == 0
    with behind(path) as connection:
        assert before == {table: connection.execute(f"select * from {table}").fetchall() for table in TABLES}
    with SqliteSaver(path, encryption=Encryption({"new": new})) as saver:
        assert talk(saver).get_state(thread()).values == {"log": ["in t", "a"]}
        assert list(saver.store.verify()) == []
    with pytest.raises(MissingKeyError):
        opened(path, key)


TABLES = ("threads", "checkpoints", "records", "runs", "events", "lineages", "inbox", "effects", "items")


# -- a key per tenant -------------------------------------------------------------------------------------------------


def tenant_of(context: KeyContext) -> str:
    return context.thread_id.partition("/")[0] or "house"


def test_R4_a_process_without_a_tenants_key_reads_and_writes_nothing_of_that_tenant(path: Path) -> None:
    """opensre's issue 561: search was scoped by tenant, and every verb by id was not. Here the key itself is scoped:
    without it no verb gets anything out of, or into, the other's thread; and R5, hatchet's issue 4128: nor a signal."""
    house, ours, theirs = (Encryption.new_key() for _ in range(3))
    everyone = Encryption({"house": house, "ours": ours, "theirs": theirs}, current=tenant_of)
    with SqliteSaver(path, encryption=everyone) as saver:
        begin(saver, "ours/1", "theirs/1")
        assert {owner: key_id for owner, (_, key_id) in keys_of(saver).items()} == {
            "": "house",
            "ours/1": "ours",
            "theirs/1": "theirs",
        }
    with SqliteSaver(path, encryption=Encryption({"house": house, "ours": ours}, current=tenant_of)) as saver:
        graph, foreign = talk(saver), thread("theirs/1")
        for verb in (
            lambda: graph.get_state(foreign),
            lambda: list(graph.get_state_history(foreign)),
            lambda: graph.invoke(None, foreign),
            lambda: graph.invoke({"log": []}, foreign, on_pending="discard"),
            lambda: graph.update_state(foreign, {"log": []}),
            lambda: graph.fork(foreign),
            lambda: graph.signal(foreign, "k", 1),
            lambda: saver.copy_thread("theirs/1", "ours/2"),
            lambda: saver.runs("theirs/1"),
            lambda: graph.invoke({"log": []}, thread("theirs/2")),
        ):
            with pytest.raises(MissingKeyError, match="'theirs'"):
                verb()
        assert graph.get_state(thread("ours/1")).values == {"log": ["in ours/1", "a"]}
        listed = {each.thread_id: each.damage for each in saver.threads()}
        assert listed["ours/1"] is None
        assert "'theirs', which was not given" in (listed["theirs/1"] or "")
        assert [each.thread_id for each in saver.threads(filter={"owner": "of ours/1"}) if not each.damage] == [
            "ours/1"
        ]
        done = saver.rekey()
        assert (done.current, list(done.failed)) == (3, [])


# -- deletion ---------------------------------------------------------------------------------------------------------


def test_deleting_a_thread_makes_every_copy_of_its_rows_unreadable(path: Path, key: bytes, tmp_path: Path) -> None:
    """The data key goes with the thread: rows that were saved elsewhere, put back, tell nothing to nobody."""
    with opened(path, key) as saver:
        graph = begin(saver, "t", "u")
        graph.signal(thread("t"), "k", "v")
        with behind(path) as connection:
            saved = connection.execute("select * from checkpoints where thread_id = 't'").fetchall()
        saver.delete_thread("t")
        assert keys_of(saver).keys() == {"", "u"}
        with behind(path) as connection:
            marks = ", ".join("?" * len(saved[0]))
            connection.executemany(f"insert into checkpoints values ({marks})", saved)
        with pytest.raises(LostKeyError), saver.store.reading() as reader:
            reader.checkpoints("t", [1])
        assert graph.get_state(thread("u")).values == {"log": ["in u", "a"]}


def test_a_message_from_a_process_that_still_knows_a_deleted_key_does_not_bring_it_back(path: Path, key: bytes) -> None:
    with opened(path, key) as mine, opened(path, key) as other:
        graph = begin(mine, "t")
        before = keys_of(mine)["t"]
        other.delete_thread("t")
        graph.signal(thread(), "k", "v")
        assert keys_of(mine)["t"] != before


def test_a_thread_that_never_began_is_deleted_with_its_key(path: Path, key: bytes) -> None:
    with opened(path, key) as saver:
        talk(saver).signal(thread(), "k", "early")
        assert "t" in keys_of(saver)
        saver.delete_thread("t")
        assert keys_of(saver).keys() == {""}


# -- filters ----------------------------------------------------------------------------------------------------------


def test_filters_on_metadata_select_what_they_do_in_plain(key: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filtering, "PAGE", 8)  # less than there is to look through
    filters = ({"even": True}, {"even": 1}, {"number": 7.0}, {"even": True, "step": 20}, {"none": 0})
    found = []
    for encryption in (None, Encryption({"k": key})):
        with InMemorySaver(encryption=encryption) as saver:
            graph = talk(saver)
            for number in range(30):
                config = thread("t", metadata={"even": number % 2 == 0, "number": number})
                graph.update_state(config, {"log": ["x"]}, as_node="b")
                if number % 2 == 0:
                    graph.update_state(thread(f"t{number}", metadata={"ten": number // 10}), {"log": []}, as_node="b")
            for limit in (None, 3):
                for filter in filters:
                    snapshots = graph.get_state_history(thread(), filter=filter, limit=limit)
                    found.append([snapshot.metadata["number"] for snapshot in snapshots])
                found.append([each.thread_id for each in saver.threads(filter={"ten": 1}, limit=limit)])
    half = len(found) // 2
    assert found[:half] == found[half:]
    assert [len(each) for each in found[:half]] == [15, 0, 1, 1, 0, 5, 3, 0, 1, 1, 0, 3]
