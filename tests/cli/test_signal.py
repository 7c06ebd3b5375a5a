"""`stepwell signal`, and what the other commands show of a thread that waits."""

import re
from typing import Any

import pytest

from tests.cli.calls import Answer, Call

UNTIL = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00"


@pytest.fixture
def waiting(answer: Answer) -> Any:
    return answer("run", "flows.py:waiting", "--thread", "t", "--input", '{"n": 1}')


def test_a_signal_goes_on_with_the_thread_that_waits_for_it(waiting: Any, call: Call, answer: Answer) -> None:
    assert waiting["status"] == "waiting"
    [wait] = waiting["waits"]
    assert (wait["node"], wait["kind"], wait["key"]) == ("waits", "signal", "go")
    assert re.fullmatch(UNTIL, wait["until"])
    assert call("signal", "t", "go", '{"paid": true}').stderr == "signal go is left for thread t\n"
    done = answer("resume", "flows.py:waiting", "--thread", "t")
    assert (done["status"], done["values"]["answer"]) == ("finished", {"paid": True})
    assert call("verify").exit_code == 0


def test_a_thread_that_waits_says_until_when(waiting: Any, call: Call, answer: Answer) -> None:
    [shown] = answer("show", "t")["waits"]
    assert shown == waiting["waits"][0]
    assert answer("show", "t")["tasks"][0]["status"] == "waiting"
    assert answer("show", "t", "--graph", "flows.py:waiting")["tasks"][0]["status"] == "waiting"
    assert re.search(rf"^wait        waits: signal go, until {UNTIL}$", call("show", "t").stdout, re.M)
    [thread] = answer("threads", "--status", "waiting")["threads"]
    assert thread["waits"] == [{"kind": "signal", "key": "go", "until": shown["until"]}]
    day, time = shown["until"][:19].split("T")
    assert call("threads").stdout.splitlines()[1].split()[-2:] == [day, f"{time}Z"]
    said = call("resume", "flows.py:waiting", "--thread", "t").stderr
    assert re.search(rf"^waits waits for signal go, until {UNTIL}$", said, re.M)


def test_an_input_for_a_thread_that_waits_is_told_for_what(waiting: Any, call: Call) -> None:
    refused = call("run", "flows.py:waiting", "--thread", "t", "--input", '{"n": 2}', status=2).stderr
    assert refused.startswith("error[pending_work]: Thread t waits (signal 'go'). Go on with `resume`")


def test_a_signal_sent_twice_under_its_id_counts_once(waiting: Any, call: Call, answer: Answer) -> None:
    sent = answer("signal", "t", "go", "1", "--id", "hook-7")
    assert sent == {"thread": "t", "key": "go", "id": "hook-7"}
    assert answer("signal", "t", "go", "1", "--id", "hook-7") == sent
    refused = call("signal", "t", "go", "2", "--id", "hook-7", status=2)
    assert refused.stderr.startswith("error[message_conflict]: Thread t has got another message under the id")
    assert answer("resume", "flows.py:waiting", "--thread", "t")["values"]["answer"] == 1


def test_a_signal_may_come_before_the_thread_begins(waiting: Any, call: Call, answer: Answer) -> None:
    assert call("signal", "u", "go", '"early"').stderr == "signal go is left for thread u, which has not begun\n"
    done = answer("run", "flows.py:waiting", "--thread", "u", "--input", '{"n": 1}')
    assert (done["status"], done["values"]["answer"]) == ("finished", "early")


def test_what_is_no_signal_is_refused(waiting: Any, call: Call) -> None:
    assert call("signal", "t", "", "1", status=2).stderr.startswith("error[invalid_wait]: ")
    assert call("signal", "t", "go", "bare", status=2).stderr.startswith("error[usage_error]: ")
    assert call("signal", "", "go", "1", status=2).stderr.startswith("error[invalid_config]: ")


def test_a_database_that_is_not_there_is_not_made(call: Call) -> None:
    assert call("signal", "t", "go", "1", status=3).stderr.startswith("error[unknown_database]: ")
