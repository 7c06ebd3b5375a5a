"""INV-7 where a thread moves to another database: what was done under a key of everybody's goes along, encrypted with
the thread's key meanwhile, and takes nothing away from what that database knows.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from stepwell import (
    DatabaseEncryptedError,
    EffectInDoubtError,
    Encryption,
    PostgresSaver,
    SqliteSaver,
    WrongKeyError,
    effect,
)
from stepwell.savers.keeping import KeepingSaver
from tests.effects.acting import Outside, one
from tests.runtime.graphs import thread
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database

WAYS = [("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "sqlite")]
KEY = Encryption.new_key()


class Move:
    """A thread's way from one database to another."""

    def __init__(self, way: tuple[str, str], folder: Path, worker: str, closing: ExitStack) -> None:
        self._bodies, self._folder, self._worker, self._closing = way, folder, worker, closing
        self.file = folder / "thread"
        self.outside = Outside()

    def database(self, number: int, key: bytes | None) -> Any:
        """Open the database that the thread comes from (0), or goes to (1)."""
        encryption = None if key is None else Encryption({"k": key})
        saver: Any
        if self._bodies[number] == "sqlite":
            saver = SqliteSaver(self._folder / f"{number}.db", encryption=encryption)
        else:
            saver = PostgresSaver(empty_database(VERSIONS[-1], self._worker), encryption=encryption)
        saver.__enter__()
        self._closing.push(saver)
        if isinstance(saver, PostgresSaver):
            saver.setup()
        return saver

    def graph(self, saver: KeepingSaver, **options: Any) -> Any:
        @effect(key="word-of-key", scope="global", **options)
        def charge(amount: int, idempotency_key: str) -> str:
            return self.outside.act(idempotency_key, amount)

        return one(lambda state: {"log": [charge(5)]}, saver)  # type: ignore[arg-type]


@pytest.fixture(params=WAYS, ids="->".join)
def move(request: pytest.FixtureRequest, tmp_path: Path, worker_id: str) -> Iterator[Move]:
    with ExitStack() as closing:
        yield Move(request.param, tmp_path, worker_id, closing)


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_what_was_done_under_a_global_key_is_not_done_again_where_its_thread_goes_on(
    move: Move, key: bytes | None
) -> None:
    here, there = move.database(0, key), move.database(1, key)
    move.graph(here).invoke({}, thread())
    here.export_thread("t", move.file)
    there.import_thread(move.file)
    graph = move.graph(there)
    assert graph.invoke({}, thread())["log"] == ["5 #1", "5 #1"]
    assert graph.invoke({}, thread("another"))["log"] == ["5 #1"]
    assert len(move.outside.asked) == 1
    assert there.verify().is_sound
    assert (b"5 #1" in move.file.read_bytes()) == (key is None)


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_what_a_database_knows_to_be_done_stays_known_whatever_comes_in(move: Move, key: bytes | None) -> None:
    here, there = move.database(0, key), move.database(1, key)
    move.outside.losses = [TimeoutError("lost")]
    with pytest.raises(EffectInDoubtError):
        move.graph(here, on_doubt="raise").invoke({}, thread())
    move.graph(there).invoke({}, thread("known"))
    asked = list(move.outside.asked)
    here.export_thread("t", move.file)
    there.import_thread(move.file)
    for name in ("known", "t"):
        assert move.graph(there, on_doubt="raise").invoke({}, thread(name))["log"][-1] == "5 #1"
    assert move.outside.asked == asked
    assert there.verify().is_sound


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_what_comes_in_as_done_settles_what_a_database_is_in_doubt_about(move: Move, key: bytes | None) -> None:
    here, there = move.database(0, key), move.database(1, key)
    move.outside.losses = [TimeoutError("lost")]
    with pytest.raises(EffectInDoubtError):
        move.graph(there, on_doubt="raise").invoke({}, thread("doubting"))
    move.graph(here).invoke({}, thread())
    asked = list(move.outside.asked)
    here.export_thread("t", move.file)
    there.import_thread(move.file)
    assert move.graph(there, on_doubt="raise").invoke(None, thread("doubting"))["log"] == ["5 #1"]
    assert move.outside.asked == asked
    assert there.verify().is_sound


def test_a_thread_with_such_an_effect_moves_only_where_its_key_is(move: Move) -> None:
    here, there = move.database(0, KEY), move.database(1, Encryption.new_key())
    move.graph(here).invoke({}, thread())
    here.export_thread("t", move.file)
    with pytest.raises(WrongKeyError):
        there.import_thread(move.file)
    assert list(there.threads()) == []
    assert there.verify().is_sound


def test_without_keys_no_such_thread_comes_out_or_in(tmp_path: Path) -> None:
    file, locked_file = tmp_path / "thread", tmp_path / "locked"
    with ExitStack() as closing:
        move = Move(("sqlite", "sqlite"), tmp_path, "", closing)
        here = move.database(0, KEY)
        move.graph(here).invoke({}, thread())
        here.export_thread("t", file)
        move.database(1, KEY)
    with SqliteSaver(tmp_path / "0.db") as locked, pytest.raises(DatabaseEncryptedError):
        locked.export_thread("t", locked_file)
    with SqliteSaver(tmp_path / "1.db") as locked:
        with pytest.raises(DatabaseEncryptedError):
            locked.import_thread(file)
        assert list(locked.threads()) == []
    assert sorted(path.name for path in tmp_path.iterdir() if "locked" in path.name) == []
