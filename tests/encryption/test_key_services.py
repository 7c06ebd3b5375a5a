"""Key services that break their protocol, and what else is no key: told before anything is written."""

from pathlib import Path
from typing import Any

import pytest

from stepwell import (
    EncryptedCache,
    Encryption,
    InMemorySaver,
    InvalidConfigError,
    InvalidKeyError,
    KeyServiceError,
    LocalKeys,
    PostgresSaver,
    PostgresStore,
    SqliteCache,
    SqliteSaver,
    SqliteStore,
    WrongKeyError,
)
from tests.encryption.conftest import begin, behind, talk
from tests.runtime.graphs import thread

KEY = Encryption.new_key()


class Service(LocalKeys):
    """Keys elsewhere, with answers that a service of a user's own might give by mistake."""

    def __init__(self, **answers: Any) -> None:
        super().__init__({"old": KEY, "new": Encryption.new_key()}, current="old")
        self.answers = answers

    def key_id(self, *of: Any) -> Any:
        return self.answers.get("key_id", super().key_id(*of))

    def wrap(self, *of: Any) -> Any:
        return self.answers.get("wrap", super().wrap(*of))

    def unwrap(self, *of: Any) -> Any:
        return self.answers.get("unwrap", super().unwrap(*of))


@pytest.mark.parametrize(
    ("verb", "answer"),
    [
        ("key_id", 5),
        ("key_id", None),
        ("key_id", ""),
        ("key_id", "a\0b"),
        ("wrap", "text"),
        ("wrap", None),
        ("wrap", b""),
    ],
)
def test_a_service_that_answers_something_else_is_told_and_leaves_the_database_usable(
    path: Path, verb: str, answer: Any
) -> None:
    """An id that is no text would be stored as one: the row of the key would never verify again."""
    with pytest.raises(KeyServiceError, match=rf"{verb}\(\) returned a \w+, where .* is due"):
        SqliteSaver(path, encryption=Encryption(Service(**{verb: answer})))
    with SqliteSaver(path, encryption=Encryption(Service())) as saver:
        begin(saver, "t")
    broken = Service()
    with SqliteSaver(path, encryption=Encryption(broken)) as saver:
        broken.answers = {verb: answer}
        with pytest.raises(KeyServiceError):
            begin(saver, "u")
        assert [each.thread_id for each in saver.threads()] == ["t"]


@pytest.mark.parametrize(
    "answers",
    [
        {"unwrap": None},
        {"unwrap": b"short"},
        {"key_id": "new", "wrap": b"nothing that opens"},
        {"key_id": 5},
    ],
)
def test_a_rotation_replaces_no_data_key_by_what_does_not_open(path: Path, answers: dict[str, Any]) -> None:
    """The wrapped data key is the only one there is: whatever a service says, it goes only when another one opens."""
    service = Service()
    with SqliteSaver(path, encryption=Encryption(service)) as saver:
        begin(saver, "t")
        with behind(path) as database:
            before = database.execute("select * from keys").fetchall()
        service.answers = {"key_id": "new"} | answers
        done = saver.rekey()
        assert done.rewrapped == 0
        assert set(done.failed) == {"", "t"}
        assert all(isinstance(error, KeyServiceError | WrongKeyError) for error in done.failed.values())
        with behind(path) as database:
            assert database.execute("select * from keys").fetchall() == before
        service.answers = {}
    with SqliteSaver(path, encryption=Encryption(service)) as saver:
        assert talk(saver).get_state(thread()).values == {"log": ["in t", "a"]}


@pytest.mark.parametrize("given", ["k", KEY, {"k": KEY}, object()], ids=["name", "key", "keys", "object"])
def test_what_is_no_encryption_is_refused_by_name_wherever_one_goes(tmp_path: Path, given: Any) -> None:
    for place in (
        lambda: SqliteSaver(tmp_path / "threads.db", encryption=given),
        lambda: InMemorySaver(encryption=given),
        lambda: PostgresSaver("host=/nowhere", encryption=given),
        lambda: SqliteStore(tmp_path / "items.db", encryption=given),
        lambda: PostgresStore("host=/nowhere", encryption=given),
        lambda: EncryptedCache(SqliteCache(tmp_path / "cache.db"), given),
    ):
        with pytest.raises(InvalidKeyError, match=r"encryption= takes an Encryption\(\.\.\.\), not a"):
            place()
    assert not (tmp_path / "threads.db").exists()


def test_keys_that_are_none_are_refused(tmp_path: Path) -> None:
    keys: Any = {"k": KEY}
    nothing: Any = None
    for wrong, told in (
        ({"current": 5}, "a function, not a int"),
        ({"cached_keys": "x"}, "a number from 1 on, not 'x'"),
    ):
        with pytest.raises(InvalidKeyError, match=told):
            Encryption(keys, **wrong)
    with pytest.raises(InvalidConfigError, match="a cache goes in here"):
        EncryptedCache(keys, Encryption(keys))
    with pytest.raises(InvalidKeyError, match="None was given"):
        EncryptedCache(SqliteCache(tmp_path / "cache.db"), nothing)
