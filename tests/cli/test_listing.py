"""Long lists: what they select, where they were cut, and how to go on behind the cut."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.calls import Answer, Call


@pytest.fixture
def threads(answer: Answer, call: Call) -> None:
    """`paused`, `done` and `broken`, changed in this order."""
    answer("run", "flows.py:graph", "--thread", "paused", "--input", '{"n": 1}')
    answer("run", "flows.py:counts", "--thread", "done", "--input", '{"n": 3}')
    call("run", "flows.py:fails", "--thread", "broken", "--input", "{}", status=1)


def names(found: Any) -> list[str]:
    return [thread["thread"] for thread in found["threads"]]


def in_pieces(ask: Callable[..., Any], size: int) -> list[Any]:
    """Read a list piece by piece, following `more`."""
    pieces, more = [], None
    while True:
        page = ask("--limit", str(size), *([] if more is None else ["--before", more]))
        pieces.append(page)
        more = page["more"]
        if more is None:
            return pieces


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], ["broken", "done", "paused"]),
        (["--status", "paused"], ["paused"]),
        (["--status", "paused", "--status", "failed"], ["broken", "paused"]),
        (["--status", "running"], []),
        (["--filter", "step=2"], ["paused"]),
        (["--filter", "step=2", "--status", "finished"], []),
        (["--filter", "' or true --=1"], []),
    ],
    ids=str,
)
def test_threads_are_selected_by_status_and_by_their_newest_checkpoint(
    threads: None, answer: Answer, words: list[str], found: list[str]
) -> None:
    assert names(answer("threads", *words)) == found


def test_a_status_that_is_none_is_refused_with_those_there_are(threads: None, call: Call) -> None:
    result = call("threads", "--status", "asleep", status=2)
    assert result.stderr.startswith(
        "error[usage_error]: Invalid value for '--status': 'asleep' is not one of 'running'"
    )


@pytest.mark.parametrize("size", [1, 2, 3])
def test_threads_read_in_pieces_are_all_of_them_once(threads: None, answer: Answer, size: int) -> None:
    pieces = in_pieces(lambda *words: answer("threads", *words), size)
    assert [name for piece in pieces for name in names(piece)] == ["broken", "done", "paused"]
    assert len(pieces) == -(-3 // size)


def test_a_cut_is_said_to_a_person_too_and_the_end_is_not_a_cut(threads: None, call: Call) -> None:
    cut = call("threads", "--limit", "2")
    assert len(cut.stdout.splitlines()) == 3
    more = cut.stderr.removeprefix("there is more: --before ").strip()
    rest = call("threads", "--limit", "2", "--before", more)
    assert [line.split()[0] for line in rest.stdout.splitlines()] == ["thread", "paused"]
    assert rest.stderr == ""


def test_a_place_that_is_none_is_refused(threads: None, call: Call) -> None:
    assert call("threads", "--before", "nowhere", status=2).stderr.startswith("error[invalid_config]: ")
    assert call("history", "done", "--before", "nope", status=3).stderr.startswith("error[unknown_checkpoint]: ")
    assert call("runs", "done", "--before", "nope", status=3).stderr.startswith("error[unknown_run]: ")


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_history_read_in_pieces_is_the_whole_of_it(threads: None, answer: Answer, call: Call, size: int) -> None:
    whole = answer("history", "done")
    assert (len(whole["checkpoints"]), whole["more"]) == (5, None)
    pieces = in_pieces(lambda *words: answer("history", "done", *words), size)
    assert [row for piece in pieces for row in piece["checkpoints"]] == whole["checkpoints"]
    told = call("history", "done", "--limit", "2").stderr
    assert told == f"there is more: --before {whole['checkpoints'][1]['checkpoint']}\n"


def test_runs_are_listed_last_first_and_in_pieces(answer: Answer, call: Call) -> None:
    call("run", "flows.py:fails", "--thread", "t", "--input", "{}", status=1)
    call("retry", "flows.py:fails", "--thread", "t", status=1)
    retried, first = answer("runs", "t")["runs"]
    assert [(run["kind"], run["status"], run["attempts"]) for run in (first, retried)] == [
        ("input", "failed", 1),
        ("retry", "failed", 1),
    ]
    assert first["error"].startswith("ValueError(")
    assert first["started_at"] <= first["finished_at"] <= retried["started_at"]
    pieces = in_pieces(lambda *words: answer("runs", "t", *words), 1)
    assert [piece["runs"] for piece in pieces] == [[retried], [first]]
    shown = call("runs", "t").stdout.splitlines()
    assert shown[0].split() == ["run", "kind", "status", "attempts", "started", "finished", "events", "error"]
    assert [line.split()[0] for line in shown[1:]] == [retried["run"], first["run"]]


def test_the_log_of_a_run_is_read_from_any_entry_on(answer: Answer, call: Call) -> None:
    answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}', "--events")
    [run] = answer("runs", "t")["runs"]
    log = answer("events", run["run"])
    assert (log["run"], log["thread"], log["more"]) == (run["run"], "t", None)
    assert [entry["offset"] for entry in log["events"]] == list(range(1, run["events"] + 1))
    assert (log["events"][0]["event"], log["events"][-1]["event"]) == ("run_started", "run_paused")
    assert log["events"][0]["facts"]["graph_id"] == "approval"
    page = answer("events", run["run"], "--after", "2", "--limit", "2")
    assert (page["events"], page["more"]) == (log["events"][2:4], 4)
    text = call("events", run["run"], "--limit", "1")
    assert text.stdout.startswith("1  20") and "  run_started  {" in text.stdout
    assert text.stderr == "there is more: --after 1\n"


def test_a_run_without_a_log_says_how_to_keep_one(answer: Answer, call: Call) -> None:
    answer("run", "flows.py:counts", "--thread", "t", "--input", '{"n": 1}')
    [run] = answer("runs", "t")["runs"]
    result = call("events", run["run"])
    assert result.stdout == ""
    assert result.stderr.startswith(f"run {run['run']} keeps no log: run it with --events")
    assert call("events", "nope", status=3).stderr.startswith("error[unknown_run]: There is no run 'nope'.")
    refused = call("run", "flows.py:own", "--thread", "t", "--input", '{"n": 1}', "--events", status=2)
    assert "compile it with events=True" in refused.stderr
