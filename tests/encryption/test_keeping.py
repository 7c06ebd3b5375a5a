"""Pruning, repair and looking at damage, on an encrypted database: as on any other, and without adding plaintext."""

from pathlib import Path

import pytest

from stepwell import Encryption, InMemorySaver, SqliteSaver, SqliteStore, TamperedRecordError, WrongKeyError
from stepwell.errors import EncryptedThreadFileError, PlaintextThreadFileError
from tests.encryption.conftest import begin, behind, mend, opened, talk
from tests.encryption.test_secrecy import bytes_of
from tests.runtime.graphs import chain, note, thread


def test_a_pruned_thread_reads_and_goes_on_as_it_does_in_plain(key: bytes) -> None:
    """Deltas and pointers lead into encrypted rows too: what others need is found after it was decrypted."""
    ended = []
    for encryption in (None, Encryption({"k": key})):
        with InMemorySaver(encryption=encryption) as saver:
            graph = chain(("a", note("a" * 400)), ("b", note("b"))).compile(checkpointer=saver, name="growing")
            for turn in range(30):
                graph.invoke({"log": [str(turn)]}, thread())
            old = list(graph.get_state_history(thread()))[20].config
            graph.fork(old, {"log": ["fork"]})
            report = saver.prune("t", keep_last=2)
            assert list(saver.store.verify()) == []
            graph.invoke({"log": ["after"]}, thread())
            history = [(each.values, each.next) for each in graph.get_state_history(thread())]
            ended.append((report.checkpoints, history))
            assert list(saver.store.verify()) == []
    assert ended[0] == ended[1]
    assert ended[0][0] > 40


def test_pruning_leaves_nothing_that_can_be_read(tmp_path: Path, key: bytes) -> None:
    with opened(tmp_path / "threads.db", key) as saver:
        graph = chain(("a", note("word-of-node"))).compile(checkpointer=saver)
        for _ in range(5):
            graph.invoke({"log": ["word-of-input"]}, thread(metadata={"about": "word-of-metadata"}))
        saver.prune("t", keep_last=1)
        assert b"word-of" not in bytes_of(tmp_path)


def test_a_tampered_checkpoint_is_named_shown_raw_and_left_behind(path: Path, key: bytes) -> None:
    with opened(path, key) as saver:
        graph = talk(saver)
        for _ in range(2):
            graph.invoke({"log": ["in"]}, thread(), on_pending="discard")
        good = list(graph.get_state_history(thread()))[2].config
        whole = graph.get_state(good).values
    with behind(path) as connection:
        newest = "select max(seq) from checkpoints where thread_id = 't'"
        connection.execute(f"update checkpoints set source = 'edit' where thread_id = 't' and seq = ({newest})")
        mend(connection)
    with opened(path, key) as saver:
        graph = talk(saver)
        told = [fault for fault in saver.store.verify() if "does not authenticate" in fault]
        assert [(fault.table, fault.thread_id) for fault in told] == [("checkpoints", "t")]
        raw = saver.read_raw(thread())
        assert "does not authenticate" in raw.faults[""]
        assert graph.get_state(graph.fork(good)).values == whole
    with SqliteSaver(path) as locked:
        assert "no key was given" in locked.read_raw(thread()).faults[""]


def test_an_item_put_in_another_ones_place_is_found(path: Path, key: bytes) -> None:
    with opened(path, key) as saver, SqliteStore(saver) as items:
        for name in ("one", "two"):
            items.put(("n",), name, {"is": name})
        assert [item.value for item in items.search(("n",), filter={"is": "two"})] == [{"is": "two"}]
    with behind(path) as connection:
        connection.execute("update items set value = (select value from items where key = 'one')")
        mend(connection)
    with opened(path, key) as saver, SqliteStore(saver) as items:
        assert [fault.table for fault in saver.store.verify()] == ["items"]
        with pytest.raises(TamperedRecordError, match="items row at 'two'"):
            items.get(("n",), "two")


def test_an_exported_thread_stays_encrypted_and_opens_where_its_key_is(tmp_path: Path, key: bytes) -> None:
    """Rows move as they are stored, with their data key, wrapped."""
    file = tmp_path / "thread"
    with opened(tmp_path / "threads.db", key) as saver:
        graph = chain(("a", note("word-of-node"))).compile(checkpointer=saver, name="g")
        graph.invoke({"log": ["word-of-input"]}, thread(metadata={"about": "word-of-metadata"}))
        saver.export_thread("t", file)
    assert b"word-of" not in file.read_bytes()
    with opened(tmp_path / "other.db", key) as other:
        other.import_thread(file)
        moved = chain(("a", note("word-of-node"))).compile(checkpointer=other, name="g")
        assert moved.get_state(thread()).values == {"log": ["word-of-input", "word-of-node"]}
        moved.invoke({"log": []}, thread())
        assert list(other.store.verify()) == []
    with opened(tmp_path / "third.db", Encryption.new_key()) as third:
        third.import_thread(file)
        with pytest.raises(WrongKeyError):
            chain(("a", note("a"))).compile(checkpointer=third, name="g").get_state(thread())
        assert [each.thread_id for each in third.threads()] == ["t"]


def test_a_thread_is_imported_as_secret_as_the_database_is_or_not_at_all(tmp_path: Path, key: bytes) -> None:
    secret, plain, mixed = (str(tmp_path / name) for name in ("secret.thread", "plain.thread", "mixed.thread"))
    with opened(tmp_path / "secret.db", key) as saver:
        begin(saver, "t")
        saver.export_thread("t", secret)
    with SqliteSaver(tmp_path / "plain.db") as saver:
        begin(saver, "t")
        saver.export_thread("t", plain)
        saver.delete_thread("t")
        with pytest.raises(EncryptedThreadFileError, match="not encrypted"):
            saver.import_thread(secret)
        begin(saver, "t")
    with opened(tmp_path / "plain.db", key, accept_plaintext=True) as saver:
        talk(saver).update_state(thread(), {"log": ["from here on"]})
        saver.export_thread("t", mixed)
    with opened(tmp_path / "secret.db", key) as saver:
        saver.delete_thread("t")
    for options in ({}, {"accept_plaintext": True}):
        with opened(tmp_path / "secret.db", key, **options) as saver:
            for path in (plain, mixed):
                with pytest.raises(PlaintextThreadFileError, match="a row of"):
                    saver.import_thread(path)
            assert list(saver.threads()) == []
    with SqliteSaver(tmp_path / "secret.db") as locked:
        with pytest.raises(PlaintextThreadFileError):
            locked.import_thread(plain)
        locked.import_thread(secret)
    with opened(tmp_path / "secret.db", key) as saver:
        assert talk(saver).get_state(thread()).values == {"log": ["in t", "a"]}
