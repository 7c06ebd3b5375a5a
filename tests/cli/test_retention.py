"""`stepwell prune`, `stats`, `vacuum`, `export` and `import`: what an operator does against growth."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from stepwell.cli.exit_status import CORRUPT
from tests.cli.calls import Answer, Call


@pytest.fixture
def paused(answer: Answer) -> None:
    answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}')


@pytest.fixture
def finished(paused: None, answer: Answer) -> None:
    answer("resume", "flows.py:graph", "--thread", "t", "--answer", "1")


def test_pruned_threads_list_what_is_kept_and_verify(finished: None, answer: Answer, call: Call) -> None:
    before = answer("history", "t")["checkpoints"]
    assert answer("prune", "t")["checkpoints"] + 1 <= len(before)
    left = answer("history", "t")["checkpoints"]
    assert left == before[:1]
    assert answer("show", "t")["parent"] is None
    assert call("verify").exit_code == 0
    assert "0 checkpoints and 0 records pruned from 1 threads" in call("prune", "--all").stderr


def test_what_is_younger_is_kept(finished: None, answer: Answer) -> None:
    assert answer("prune", "--all", "--older-than", "1d", "--keep-last", "1")["checkpoints"] == 0


def test_an_open_question_keeps_its_thread_from_being_swept(paused: None, answer: Answer, call: Call) -> None:
    assert "error[invalid_config]" in call("prune", "--all", "--delete", "--older-than", "0s", status=2).stderr
    assert answer("prune", "--all", "--delete", "--older-than", "1d")["skipped"] == {}


@pytest.mark.parametrize(
    "words",
    [
        ("prune",), ("prune", "t", "--all"), ("prune", "t", "--delete", "--older-than", "1d"),
        ("prune", "--all", "--delete"), ("prune", "t", "--older-than", "1y"), ("prune", "t", "--unfinished"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_prune_does_not_understand_changes_nothing(
    finished: None, answer: Answer, call: Call, words: tuple[str, ...]
) -> None:
    before = answer("history", "t")
    assert call(*words, status=2).stderr.startswith("error[")
    assert answer("history", "t") == before


def test_a_thread_that_is_not_there_is_not_pruned(finished: None, call: Call) -> None:
    assert "error[unknown_thread]" in call("prune", "u", status=3).stderr


def test_stats_and_vacuum_say_what_the_database_takes(finished: None, answer: Answer, call: Call) -> None:
    told = answer("stats")
    assert [thread["thread"] for thread in told["threads"]] == ["t"]
    assert answer("stats", "t")["threads"] == told["threads"]
    assert "checkpoints" in call("stats", "t").stdout
    assert "t" in call("stats").stdout
    assert answer("vacuum")["bytes"] <= told["bytes"]
    assert call("vacuum").stderr.endswith(" now\n")


def test_a_thread_moves_to_another_database(paused: None, answer: Answer, call: Call, folder: Path) -> None:
    written = answer("export", "t", "t.thread")
    assert written["bytes"] == (folder / "t.thread").stat().st_size
    assert answer("import", "t.thread", "--db", "other.db")["rows"] == written["rows"]
    assert answer("show", "t", "--db", "other.db")["values"] == answer("show", "t")["values"]
    assert "error[thread_exists]" in call("import", "t.thread", status=2).stderr
    (folder / "t.thread").write_bytes(b"something else")
    assert "error[thread_file]" in call("import", "t.thread", "--db", "third.db", status=CORRUPT).stderr
    assert "rows from" not in call("export", "t", "again.thread").stderr
    assert "error[file_taken]: again.thread is there already" in call("export", "t", "again.thread", status=2).stderr


def test_a_file_that_is_not_imported_leaves_no_database_behind(
    paused: None, answer: Answer, call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPWELL_KEY", f"k={'0f' * 32}")
    answer("run", "flows.py:graph", "--thread", "s", "--input", '{"n": 1}', "--db", "secret.db")
    answer("export", "s", "secret.thread", "--db", "secret.db")
    monkeypatch.delenv("STEPWELL_KEY")
    answer("export", "t", "plain.thread")
    (folder / "cut.thread").write_bytes((folder / "plain.thread").read_bytes()[:-1])
    assert "error[unusable_file]" in call("import", "no.thread", "--db", "new.db", status=2).stderr
    assert "error[unusable_file]" in call("export", "t", "no folder/t.thread", status=2).stderr
    assert "error[thread_file]" in call("import", "cut.thread", "--db", "new.db", status=CORRUPT).stderr
    assert "error[encrypted_thread_file]" in call("import", "secret.thread", "--db", "new.db", status=6).stderr
    monkeypatch.setenv("STEPWELL_KEY", f"k={'0f' * 32}")
    assert "error[plaintext_thread_file]" in call("import", "plain.thread", "--db", "new.db", status=6).stderr
    assert not (folder / "new.db").exists()
    assert answer("import", "secret.thread", "--db", "new.db")["thread_id"] == "s"


def test_a_damaged_thread_is_named_as_its_user_knows_it(
    finished: None, answer: Answer, call: Call, folder: Path
) -> None:
    with closing(sqlite3.connect(folder / "stepwell.db")) as connection:
        connection.execute("update runs set status = 'other'")
        connection.commit()
    assert "runs row of thread 't' at '" in answer("stats")["unread"]["t"]
    assert "runs row of thread 't' at '" in call("export", "t", "t.thread", status=CORRUPT).stderr
    assert not list(folder.glob("t.thread*"))
