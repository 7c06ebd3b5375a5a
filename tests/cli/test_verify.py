"""`stepwell verify`: a damaged row is found, named, and never shown as if it were sound."""

from contextlib import closing
from pathlib import Path

import apsw
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
    assert answer("verify") == {"database": "stepwell.db", "faults": [], "threads": [], "left_behind": []}


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


def test_a_repaired_thread_shows_what_led_to_where_it_is_now(call: Call, answer: Answer, database: Path) -> None:
    sound = [each["checkpoint"] for each in answer("history", "t", "--lineage", "current")["checkpoints"]]
    assert sound == [each["checkpoint"] for each in answer("history", "t")["checkpoints"]]
    with closing(apsw.Connection(str(database))) as connection:
        connection.execute("update checkpoints set step = 99 where thread_id = 't' and checkpoint_id = ?", (sound[0],))
    repaired = answer("repair", "t")
    call("history", "t", status=5)
    shown = [each["checkpoint"] for each in answer("history", "t", "--lineage", "current")["checkpoints"]]
    assert shown == [repaired["checkpoint"], *sound[1:]]
    assert "neither the number of a lineage nor" in call("history", "t", "--lineage", "newest", status=2).stderr


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


def test_verify_says_what_depends_on_the_damage_and_repair_goes_on(call: Call, answer: Answer, database: Path) -> None:
    flip(database, b"a marker in a body")
    said = call("verify", status=1).stderr
    assert "thread t: the first bad record is checkpoints row of thread 't' at " in said
    (sick,) = answer("verify", status=1)["threads"]
    assert sick["thread"] == "t"
    assert sick["first"]["table"] == "checkpoints"
    assert f"checkpoints cannot be read: {sick['unreadable'][0]['checkpoint']}" in said
    assert said.splitlines()[-1] == f"go on from {sick['last_good']}: {sick['repair']}"
    assert sick["repair"].endswith(" repair t")
    done = answer("repair", "t", "--by", "ann", "--reason", "a flipped bit")
    assert done["repaired_from"] == sick["last_good"]
    assert done["left_behind"] == answer("verify")["left_behind"]
    assert call("verify").stderr == (
        f"stepwell.db: every row verifies, but for {len(done['left_behind'])} that a repair has left behind\n"
    )
    assert call("verify", "t").exit_code == 0
    assert answer("show", "t")["checkpoint"] == done["checkpoint"]


def test_repair_says_what_it_did(call: Call, answer: Answer, database: Path) -> None:
    flip(database, b"a marker in a body")
    good = answer("verify", status=1)["threads"][0]["last_good"]
    result = call("repair", "t", "--to", good)
    assert all(line.startswith("left behind: checkpoints row of thread 't' at ") for line in result.stdout.splitlines())
    assert result.stderr.startswith("thread t: lineage 1 at ")
    assert result.stderr.endswith(f" goes on from {good}. `resume` runs it\n")


def test_repair_refuses_what_is_sound_or_not_there(call: Call, database: Path) -> None:
    assert call("repair", "t", status=2).stderr.startswith("error[nothing_to_repair]: Thread t is sound")
    assert call("repair", "nobody", status=3).stderr.startswith("error[unknown_thread]")
    assert call("verify", "nobody", status=3).stderr.startswith("error[unknown_thread]")
