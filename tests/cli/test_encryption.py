"""The command line on an encrypted database: with its keys, and without."""

import base64
import os
from pathlib import Path

import pytest

from tests.cli.calls import Answer, Call

KEY, NEW = os.urandom(32), os.urandom(32)
FORMS = {"base64": base64.b64encode(KEY).decode(), "hex": KEY.hex()}


@pytest.fixture
def key_file(folder: Path) -> str:
    path = folder / "keys.txt"
    path.write_text(f"# the keys\n\nk = {FORMS['base64']}\n")
    return str(path)


@pytest.fixture
def database(call: Call, folder: Path, key_file: str) -> Path:
    call("run", "flows.py:counts", "--thread", "t", "--input", '{"n": 41}', "--key-file", key_file)
    return folder / "stepwell.db"


def test_without_a_key_a_database_is_verified_and_its_threads_listed(
    call: Call, answer: Answer, database: Path
) -> None:
    assert answer("verify")["faults"] == []
    (listed,) = answer("threads")["threads"]
    assert (listed["thread"], listed["status"]) == ("t", "finished")
    assert "verify also finds" in call("verify").stderr
    shown = call("threads")
    assert "is encrypted, and no key was given" in shown.stderr
    assert "finished" in shown.stdout
    assert "damaged" not in shown.stdout
    for words in (["show", "t"], ["history", "t"], ["journal", "t"], ["signal", "t", "k", "1"]):
        result = call(*words, status=6)
        assert "error[database_encrypted]: This database is encrypted, and no key was given." in result.stderr
        assert "STEPWELL_KEY or --key-file" in result.stderr
    call("delete", "t", "--yes")


@pytest.mark.parametrize("form", FORMS)
def test_with_a_key_a_command_shows_what_there_is(
    form: str, answer: Answer, database: Path, key_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = answer("show", "t", "--key-file", key_file)
    monkeypatch.setenv("STEPWELL_KEY", f"k={FORMS[form]}")
    assert answer("show", "t") == shown
    assert answer("verify")["faults"] == []


def test_an_encryption_of_a_module_serves_too(call: Call, answer: Answer, database: Path, folder: Path) -> None:
    (folder / "secrets_of.py").write_text(
        f"from stepwell import Encryption\nours = Encryption({{'k': bytes.fromhex('{KEY.hex()}')}})\nother = 1\n"
    )
    assert answer("show", "t", "--encryption", "secrets_of:ours")["thread"] == "t"
    refused = call("show", "t", "--encryption", "secrets_of:other", status=2)
    assert "is a int, not a stepwell.Encryption" in refused.stderr


@pytest.mark.parametrize(
    "text",
    ["", "# nothing\n", "k\n", f"k={FORMS['hex'][:-2]}\n", f"={FORMS['hex']}\n", f"{FORMS['base64'][:-1]}\n"],
    ids=["empty", "comment", "id", "short", "no-id", "unpadded"],
)
def test_what_is_no_key_is_refused_and_not_repeated(text: str, call: Call, database: Path, folder: Path) -> None:
    (folder / "bad.txt").write_text(text)
    result = call("show", "t", "--key-file", "bad.txt", status=2)
    assert "ID=KEY" in result.stderr
    assert FORMS["hex"][:20] not in result.stderr
    assert FORMS["base64"][:20] not in result.stderr
    assert "cannot be read" in call("show", "t", "--key-file", "absent.txt", status=2).stderr
    both = call("show", "t", "--key-file", "bad.txt", "--encryption", "a:b", status=2)
    assert "leave one out" in both.stderr


def test_a_wrong_key_is_said(call: Call, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_KEY", f"k={NEW.hex()}")
    assert "error[wrong_key]" in call("show", "t", status=6).stderr
    monkeypatch.setenv("STEPWELL_KEY", f"other={NEW.hex()}")
    assert "error[missing_key]" in call("show", "t", status=6).stderr


def test_rekey_wraps_by_the_first_key_and_the_old_one_can_go(
    call: Call, answer: Answer, database: Path, folder: Path
) -> None:
    (folder / "both.txt").write_text(f"new={NEW.hex()}\nk={KEY.hex()}\n")
    (folder / "new.txt").write_text(f"new={NEW.hex()}\n")
    result = call("rekey", "--key-file", "both.txt")
    assert result.stderr == "stepwell.db: 2 data keys wrapped anew, 0 were current\n"
    facts = {"database": "stepwell.db", "rewrapped": 0, "current": 2, "failed": {}}
    assert answer("rekey", "--key-file", "both.txt") == facts
    assert answer("show", "t", "--key-file", "new.txt")["thread"] == "t"
    assert "error[database_encrypted]" not in call("verify", "--key-file", "new.txt").stderr
    assert "error[database_encrypted]" in call("rekey", status=6).stderr
