"""`stepwell migrate`: the schema of a database, looked at and brought to the newest."""

from pathlib import Path

import pytest

from stepwell.testing.releases import later_release
from tests.cli.calls import Answer, Call

NOTES = "create table notes (note text not null) strict"
BROKEN = "insert into nowhere values (1)"


@pytest.fixture
def database(answer: Answer, folder: Path) -> Path:
    answer("run", "flows.py:counts", "--thread", "t", "--input", '{"n": 1}')
    return folder / "stepwell.db"


def test_a_database_of_this_release_needs_nothing(call: Call, answer: Answer, database: Path) -> None:
    for words in (["migrate"], ["migrate", "--check"]):
        result = call(*words)
        newest = "stepwell.db: schema version 1, the newest that this release knows\n"
        assert (result.stdout, result.stderr) == ("", newest)
    facts = {"database": "stepwell.db", "version": 1, "newest": 1, "pending": [], "migrated": []}
    assert answer("migrate") == answer("migrate", "--check") == facts


def test_check_says_what_would_run_and_changes_nothing(call: Call, answer: Answer, database: Path) -> None:
    with later_release(NOTES):
        for _ in range(2):
            result = call("migrate", "--check", status=1)
            assert result.stdout == "would run 0002_later\n"
            assert result.stderr == "stepwell.db: schema version 1, this release writes version 2\n"
        facts = {"database": "stepwell.db", "version": 1, "newest": 2, "pending": ["0002_later"], "migrated": []}
        assert answer("migrate", "--check", status=1) == facts


def test_migrate_runs_it_once(call: Call, answer: Answer, database: Path) -> None:
    with later_release(NOTES):
        result = call("migrate")
        assert result.stdout == "ran 0002_later\n"
        assert result.stderr == "stepwell.db: schema version 2, from version 1\n"
        call("migrate", "--check")
        assert answer("migrate")["migrated"] == []
        assert answer("show", "t")["thread"] == "t"


def test_no_other_command_changes_the_schema(call: Call, database: Path) -> None:
    with later_release(NOTES):
        for words in (["threads"], ["verify"], ["show", "t"], ["run", "flows.py:counts", "--thread", "t"]):
            result = call(*words, status=6)
            assert result.stderr.startswith("error[schema_outdated]: 'stepwell.db' has schema version 1;")
        call("migrate", "--check", status=1)


def test_what_a_newer_release_migrated_is_refused_by_every_command(call: Call, database: Path) -> None:
    with later_release(NOTES):
        call("migrate")
    for words in (["threads"], ["migrate"], ["migrate", "--check"]):
        result = call(*words, status=6)
        assert result.stderr.startswith(
            "error[schema_newer]: 'stepwell.db' has schema version 2; this release knows 1."
        )


def test_a_migration_that_fails_is_named(call: Call, database: Path) -> None:
    with later_release(BROKEN):
        result = call("migrate", status=6)
        assert result.stderr.startswith("error[schema_migration_failed]: Migration 0002_later of 'stepwell.db' failed")
        assert result.stdout == ""
    assert call("threads").stdout


def test_there_must_be_a_database(call: Call, folder: Path) -> None:
    for words in (["migrate"], ["migrate", "--check"]):
        told = "There is no database 'stepwell.db', and nothing to migrate: `run` makes it with the newest schema."
        assert call(*words, status=3).stderr.startswith(f"error[unknown_database]: {told}")
