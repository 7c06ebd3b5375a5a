"""`stepwell verify`: a damaged row is found, named, and never shown as if it were sound."""

from pathlib import Path

import pytest

from tests.cli.calls import Answer, Call


@pytest.fixture
def database(answer: Answer, folder: Path) -> Path:
    answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}')
    answer("run", "flows.py:counts", "--thread", "sound", "--input", '{"n": 1}')
    return folder / "stepwell.db"


def flip(path: Path, marker: bytes) -> None:
    """Flip one bit in every copy of the marker."""
    content = path.read_bytes()
    assert marker in content
    path.write_bytes(content.replace(marker, bytes([marker[0] ^ 1]) + marker[1:]))


def test_a_sound_database_has_no_faults(call: Call, answer: Answer, database: Path) -> None:
    result = call("verify")
    assert (result.stdout, result.stderr) == ("", "stepwell.db: every row verifies\n")
    assert answer("verify") == {"database": "stepwell.db", "faults": []}


def test_a_flipped_bit_is_a_line_and_exit_1(call: Call, answer: Answer, database: Path) -> None:
    flip(database, b"a marker in a body")
    lines = call("verify", status=1).stdout.splitlines()
    assert lines
    assert all(line.startswith("checkpoints row of thread 't' at ") for line in lines)
    assert "its columns do not match its digest" in lines[0]
    assert answer("verify", status=1)["faults"] == lines


def test_a_damaged_row_is_refused_by_what_reads_it_and_by_nothing_else(call: Call, database: Path) -> None:
    flip(database, b"a marker in a body")
    for words in (["show", "t"], ["history", "t"], ["resume", "flows.py:graph", "--thread", "t", "--answer", "1"]):
        result = call(*words, status=5)
        assert result.stdout == ""
        assert result.stderr.startswith("error[corrupt_record]: The record checkpoints row of thread 't'")
        assert result.stderr.count("\n") == 1
    assert call("show", "sound").exit_code == 0


def test_what_is_no_database_is_said_to_be_none(call: Call, folder: Path) -> None:
    (folder / "stepwell.db").write_text("Dear diary, " * 100)
    result = call("verify", status=6)
    assert result.stderr.startswith("error[unsupported_storage]: 'stepwell.db' is not a SQLite database.")


def test_a_database_whose_tables_cannot_be_read_is_corrupt(call: Call, database: Path) -> None:
    flip(database, b"CREATE TABLE records")
    for words in (["verify"], ["threads"], ["show", "t"]):
        result = call(*words, status=5)
        assert result.stderr.startswith("error[corrupt_record]: ")
        assert result.stderr.count("\n") == 1
