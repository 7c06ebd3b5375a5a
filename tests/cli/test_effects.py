"""`stepwell effects` and `stepwell resolve`: what nobody knows, and who says what happened. Neither needs a graph."""

from typing import Any

import pytest

from tests.cli.calls import Answer, Call


@pytest.fixture
def doubted(call: Call, answer: Answer) -> str:
    """Return the key of an effect in doubt."""
    call("run", "flows.py:pays", "--thread", "t", "--input", '{"n": 5}', status=1)
    [effect] = answer("effects", "--in-doubt")["effects"]
    return str(effect["key"])


def test_what_is_in_doubt_is_listed_over_all_threads(doubted: str, call: Call, answer: Answer) -> None:
    call("run", "flows.py:pays", "--thread", "u", "--input", '{"n": 6}', status=1)
    both = answer("effects", "--in-doubt")["effects"]
    assert [(e["thread"], e["node"], e["name"], e["status"], e["attempts"]) for e in both] == [
        ("t", "buy", "charge", "in doubt", 1),
        ("u", "buy", "charge", "in doubt", 1),
    ]
    assert answer("effects", "t")["effects"] == both[:1]
    assert call("effects", "nope", status=3).stderr.startswith("error[unknown_thread]: ")
    header, line = call("effects", "u").stdout.splitlines()
    assert header.split() == ["key", "thread", "node", "name", "status", "attempts", "started"]
    assert line.split()[1:7] == ["u", "buy", "charge", "in", "doubt", "1"]


def test_a_run_that_meets_a_doubt_names_the_command_that_settles_it(doubted: str, call: Call) -> None:
    said = call("resume", "flows.py:pays", "--thread", "t", status=1).stderr
    assert f"then say what happened: `resolve t {doubted}`. Try again: " in said
    refused = call("run", "flows.py:pays", "--thread", "t", "--input", '{"n": 6}', status=2).stderr
    assert refused.startswith(f"error[pending_work]: Thread t has effects in doubt ({doubted})")
    assert "Say what happened with `resolve`" in refused


def test_a_list_that_was_cut_says_where_to_go_on(doubted: str, call: Call, answer: Answer) -> None:
    call("run", "flows.py:pays", "--thread", "a:b", "--input", '{"n": 6}', status=1)
    first = answer("effects", "--in-doubt", "--limit", "1")
    rest = answer("effects", "--in-doubt", "--after", first["more"])
    assert [e["thread"] for e in first["effects"] + rest["effects"]] == ["a:b", "t"]
    assert rest["more"] is None
    assert f"--after {first['more']}" in call("effects", "--limit", "1").stderr
    assert "is no place in this list" in call("effects", "--after", "nowhere", status=2).stderr


def test_a_receipt_is_what_the_thread_goes_on_with(doubted: str, call: Call, answer: Answer) -> None:
    said = call("resolve", "t", doubted, "--receipt", '{"id": 7}', "--by", "ann", "--reason", "seen").stdout
    assert said == "charge of thread t: done, as ann decided\n"
    assert answer("effects", "--in-doubt")["effects"] == []
    done = answer("resume", "flows.py:pays", "--thread", "t")
    assert (done["status"], done["values"]["answer"]) == ("finished", {"id": 7})
    _, *lines = call("journal", "t").stdout.splitlines()
    assert lines[0].split()[-1] == "ann"


def test_a_decision_is_printed_as_the_journal_has_it(doubted: str, answer: Answer) -> None:
    made: Any = answer("resolve", "t", doubted, "--failed", "never came", "--by", "ann", "--reason", "they said so")
    assert (made["status"], made["error_state"], made["decision"]) == ("failed", "never came", "failed")
    assert (made["decided_by"], made["reason"], made["key"]) == ("ann", "they said so", doubted)


def test_what_cannot_be_resolved_so_is_refused(doubted: str, call: Call) -> None:
    for said in ([], ["--receipt", "1", "--retry"]):
        told = call("resolve", "t", doubted, *said, status=2).stderr
        assert told.startswith("error[invalid_resolution]: ")
        assert "say one of --receipt, --failed and --retry" in told
    assert "is not JSON" in call("resolve", "t", doubted, "--receipt", "x", status=2).stderr
    assert call("resolve", "t", "f" * 32, "--retry", status=3).stderr.startswith("error[unknown_effect]: ")
    assert call("resolve", "nope", doubted, "--retry", status=3).stderr.startswith("error[unknown_thread]: ")
    call("resolve", "t", doubted, "--receipt", "1")
    assert call("resolve", "t", doubted, "--retry", status=2).stderr.startswith("error[effect_not_in_doubt]: ")
