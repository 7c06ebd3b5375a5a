"""What can be read from the disk without a key: of what a user gave or a node made, nothing."""

from pathlib import Path
from typing import Any

import pytest

from stepwell import Encryption, SqliteSaver, SqliteStore
from tests.encryption.life import WORDS, live, word

KEY = Encryption.new_key()


def bytes_of(folder: Path) -> bytes:
    """Return everything that lies in a folder: the database and, while it is open, its log."""
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def read_off(folder: Path) -> set[str]:
    """Return the words that can be read from the files."""
    found = bytes_of(folder)
    return {word for word in WORDS if word.encode() in found or word.encode("utf-16-le") in found}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_nothing_that_was_given_or_made_can_be_read_from_the_files(tmp_path: Path, durability: str) -> None:
    """Every place in which a user or a node says something has a word of its own: unencrypted, each is found in the
    files; encrypted, none is, neither in the database nor in its log."""
    states: list[Any] = []
    left: list[set[str]] = []
    for name, encryption in (("plain", None), ("encrypted", Encryption({"k": KEY}))):
        folder = tmp_path / name
        folder.mkdir()
        with SqliteSaver(folder / "threads.db", encryption=encryption) as saver, SqliteStore(saver) as items:
            states.append(live(saver, items, durability))
            assert (folder / "threads.db-wal").stat().st_size > 0
            left.append(read_off(folder))
            assert list(saver.store.verify()) == []
        left[-1] |= read_off(folder)
    assert states[0] == states[1]
    unsaid = {word("send")} if durability == "exit" else set()  # there no checkpoint holds it
    assert set(WORDS) - left[0] == unsaid
    assert left[1] == set()
