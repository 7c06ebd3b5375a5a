"""`stepwell copy` and `stepwell delete`: what an operator does to a whole thread."""

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import Answer, Call, Work, command_line
from tests.cli.test_terminal import session


@pytest.fixture
def paused(answer: Answer) -> Any:
    return answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}')


def test_a_copy_is_the_thread_under_another_id(paused: Any, call: Call, answer: Answer) -> None:
    made = answer("copy", "t", "u")
    assert made == {"thread": "u", "copied_from": "t", "status": "paused", "checkpoint": paused["checkpoint"]}
    assert answer("show", "u")["values"] == paused["values"]
    done = answer("resume", "flows.py:graph", "--thread", "u", "--answer", "1")
    assert (done["status"], answer("show", "t")["status"]) == ("finished", "paused")
    assert call("copy", "t", "v").stderr == "thread v: a copy of t, paused\n"
    assert call("verify").exit_code == 0


def test_a_copy_never_writes_over_a_thread(paused: Any, call: Call, answer: Answer) -> None:
    answer("copy", "t", "u")
    assert call("copy", "t", "u", status=2).stderr.startswith("error[thread_exists]: Thread u is not empty")
    assert "thread t cannot be copied onto itself" in call("copy", "t", "t", status=2).stderr
    assert call("copy", "nope", "w", status=3).stderr.startswith("error[unknown_thread]: ")
    assert call("copy", "t", "", status=2).stderr.startswith("error[invalid_config]: ")


def test_a_deleted_thread_is_gone_and_its_id_can_be_used_anew(paused: Any, call: Call, answer: Answer) -> None:
    answer("copy", "t", "u")
    assert answer("delete", "t", "--yes") == {"thread": "t", "deleted": True}
    assert [thread["thread"] for thread in answer("threads")["threads"]] == ["u"]
    for words in (["show", "t"], ["history", "t"], ["runs", "t"], ["tree", "t"], ["delete", "t", "--yes"]):
        assert call(*words, status=3).stderr.startswith("error[unknown_thread]: There is no thread 't'.")
    assert answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 2}')["values"]["n"] == 2


def test_what_a_run_wrote_can_be_deleted(call: Call, answer: Answer) -> None:
    for _ in range(3):
        answer("run", "flows.py:steps", "--thread", "t", "--input", '{"n": 2}')
    run_ids = [run["run"] for run in answer("runs", "t")["runs"]]
    before, shown = answer("history", "t")["checkpoints"], answer("show", "t")
    told = answer("delete", "t", "--run", run_ids[1], "--yes")
    assert (told["deleted"], list(told["left"])) == (False, [run_ids[1]])
    assert (
        len(answer("history", "t")["checkpoints"])
        == len(before) - told["checkpoints"] - told["left"][run_ids[1]]["held"]
    )
    assert answer("show", "t")["values"] == shown["values"]
    assert "error[unknown_run]: Thread 't' has no run" in call("delete", "t", "--run", "r", "--yes", status=3).stderr
    assert "what 1 runs of thread 't' wrote shall go" in call("delete", "t", "--run", run_ids[1], status=2).stderr
    assert f"run {run_ids[1]} stays known" in call("delete", "t", "--run", run_ids[1], "--yes").stderr
    every = [word for run_id in run_ids for word in ("--run", run_id)]
    assert "nobody else wrote to it" in call("delete", "t", *every, "--yes").stderr
    assert answer("threads")["threads"] == []


@pytest.mark.parametrize("json", [[], ["--json"]], ids=["text", "json"])
def test_where_nobody_can_be_asked_yes_must_be_said(paused: Any, call: Call, answer: Answer, json: list[str]) -> None:
    result = call("delete", "t", *json, status=2)
    assert result.stderr == "error[usage_error]: There is nobody to ask whether thread 't' shall go: say --yes.\n"
    assert answer("show", "t")["status"] == "paused"


@pytest.mark.parametrize(("typed", "status"), [("y\n", 0), ("n\n", 1), ("\n", 1), (signal.SIGINT, 130), ("\x04", 130)])
def test_on_a_terminal_it_asks_and_nothing_but_yes_deletes(
    paused: Any, answer: Answer, typed: str | signal.Signals, status: int
) -> None:
    ended, shown = session(command_line("delete", "t"), typed, prompt="? [y/N]: ")
    assert "Delete thread t (paused, 1 lineage)? [y/N]: " in shown
    assert ended == status
    assert len(answer("threads")["threads"]) == (0 if status == 0 else 1)


def test_a_run_that_is_going_on_is_named_and_refused_its_next_write(work: Work, call: Call, answer: Answer) -> None:
    working = work("run", "flows.py:long", "--thread", "t", "--input", "{}")
    assert [thread["status"] for thread in answer("threads")["threads"]] == ["running"]
    _, shown = session(command_line("delete", "t"), "n\n", prompt=" [y/N]: ")
    assert "A run is at work on it and will be refused its next write." in shown
    answer("delete", "t", "--yes")
    assert answer("threads")["threads"] == []
    working.process.kill()


def test_a_killed_run_is_shown_as_crashed(work: Work, call: Call, answer: Answer) -> None:
    work("run", "flows.py:long", "--thread", "t", "--input", "{}").stop(signal.SIGKILL)
    assert [thread["status"] for thread in answer("threads", "--status", "crashed")["threads"]] == ["crashed"]
    assert answer("threads", "--status", "running")["threads"] == []
    assert answer("show", "t")["status"] == "crashed"
    assert answer("runs", "t")["runs"][0]["status"] == "crashed"
    assert answer("copy", "t", "u")["status"] == "crashed"
    assert answer("resume", "flows.py:long", "--thread", "u")["values"]["seen"] == ["first", "hangs"]


def test_these_commands_make_no_database(call: Call, folder: Path) -> None:
    for words in (
        *(["copy", "t", "u"], ["delete", "t", "--yes"], ["runs", "t"], ["events", "r"], ["tree", "t"]),
        *(["show", "t", "a", "b"], ["fork", "flows.py:graph", "--thread", "t"]),
        *(["retry", "flows.py:graph", "--thread", "t"], ["threads", "--status", "paused"]),
    ):
        assert call(*words, status=3).stderr.startswith("error[unknown_database]: There is no database 'stepwell.db'.")
    assert list(folder.iterdir()) == []
