"""`stepwell journal`: what a thread has recorded of its steps, without its graph."""

import json

import pytest

from tests.cli.calls import Answer, Call


@pytest.fixture
def noted(answer: Answer) -> None:
    answer("run", "flows.py:steps", "--thread", "t", "--input", '{"n": 3}')


def test_a_table_has_a_line_for_each_attempt_newest_first(noted: None, call: Call) -> None:
    header, *lines = call("journal", "t").stdout.splitlines()
    assert header.split() == ["seq", "at", "kind", "node", "action", "status", "attempt", "by"]
    assert [line.split()[3:] for line in lines] == [
        ["step", "work", "locate(3)", "done", "2"],
        ["step", "work", "locate(3)", "attempt:", "ConnectionError('no", "line')", "1"],
    ]


def test_json_is_one_line_for_each_entry(noted: None, call: Call) -> None:
    done, failed = map(json.loads, call("journal", "t", "--json").stdout.splitlines())
    assert (done["kind"], done["name"], done["status"], done["attempts"]) == ("step", "locate", "done", 2)
    assert done["receipt"] == {"$type": "flows:Point", "$value": {"x": 3, "label": "found"}}
    assert (failed["error_state"], failed["receipt"], failed["retry_count"]) == ("ConnectionError('no line')", None, 0)
    assert (failed["step_id"], failed["checkpoint"]) == (done["step_id"], done["checkpoint"])


def test_a_list_that_was_cut_says_where_to_go_on(noted: None, call: Call, answer: Answer) -> None:
    first = call("journal", "t", "--limit", "1", "--json")
    seq = json.loads(first.stdout)["seq"]
    assert first.stderr == f"there is more: --before {seq}\n"
    rest = call("journal", "t", "--before", str(seq), "--json")
    assert (json.loads(rest.stdout)["status"], rest.stderr) == ("attempt", "")


def test_a_lineage_and_a_thread_that_are_not_there(noted: None, call: Call) -> None:
    assert call("journal", "t", "--lineage", "0", "--json").stdout == call("journal", "t", "--json").stdout
    assert "has no lineage 1" in call("journal", "t", "--lineage", "1", status=2).stderr
    assert call("journal", "nope", status=3).stderr.startswith("error[unknown_thread]: ")
