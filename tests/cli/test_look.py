"""`stepwell threads, history, show, version`: what is on disk, with the graph at hand and without."""

import re
from typing import Any

import pytest

from tests.cli.calls import Answer, Call

POINT = {"$type": "flows:Point", "$value": {"x": 2, "label": "a marker in a body"}}


@pytest.fixture
def paused(answer: Answer) -> Any:
    return answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 2}')


def test_threads_lists_status_steps_time_and_the_last_error(call: Call, answer: Answer, paused: Any) -> None:
    call("run", "flows.py:fails", "--thread", "u", "--input", "{}", status=1)
    failed, asking = answer("threads")["threads"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", failed.pop("updated_at"))
    assert re.fullmatch(r"[0-9a-f]{32}", failed.pop("checkpoint"))
    assert failed.pop("error").startswith("ValueError(")
    assert failed == {
        "thread": "u",
        "status": "failed",
        "steps": 0,
        "graph": "fails",
        "lineages": 1,
        "damage": None,
        "waits": [],
        "run": None,
    }
    assert (asking["thread"], asking["status"], asking["steps"], asking["error"]) == ("t", "paused", 2, None)
    lines = call("threads").stdout.splitlines()
    assert lines[0].split() == ["thread", "status", "steps", "updated", "waits", "until", "last", "error"]
    assert [line.split()[:3] for line in lines[1:]] == [["u", "failed", "0"], ["t", "paused", "2"]]
    assert [thread["thread"] for thread in answer("threads", "--limit", "1")["threads"]] == ["u"]


def test_history_lists_checkpoints_newest_first(call: Call, answer: Answer, paused: Any) -> None:
    rows = answer("history", "t")["checkpoints"]
    assert [(row["step"], row["source"], row["next"]) for row in rows] == [
        (2, "loop", ["ask"]),
        (1, "loop", ["wide", "wide"]),
        (0, "loop", ["first"]),
        (-1, "input", ["__start__"]),
    ]
    assert rows[0]["checkpoint"] == paused["checkpoint"]
    assert rows[0]["parent_seq"] == rows[1]["seq"]
    assert {*rows[0]} == {
        *("checkpoint", "step", "source", "lineage", "seq", "parent_seq"),
        *("created_at", "run", "next", "writers", "digest"),
    }
    assert "wide x2" in call("history", "t").stdout
    assert len(answer("history", "t", "--limit", "2")["checkpoints"]) == 2


@pytest.mark.parametrize(
    ("wanted", "steps"),
    [
        (["step=1"], [1]),
        (['source="loop"', "step=0"], [0]),
        (['thread_id="u"'], []),
        (["step=true"], []),
        (['source="\' or 1=1 --"'], []),
        (["' or true --=1"], []),
    ],
)
def test_a_filter_narrows_and_never_widens(answer: Answer, paused: Any, wanted: list[str], steps: list[int]) -> None:
    answer("run", "flows.py:counts", "--thread", "u", "--input", '{"n": 1}')
    words = [word for text in wanted for word in ("--filter", text)]
    assert [row["step"] for row in answer("history", "t", *words)["checkpoints"]] == steps


@pytest.mark.parametrize("thread_id", ["%", "*", "' or '1'='1", "T", "t ", ""])
def test_a_thread_id_names_that_thread_alone(call: Call, paused: Any, thread_id: str) -> None:
    for command in ("show", "history"):
        assert call(command, thread_id, status=3).stderr.startswith("error[unknown_thread]: ")


def test_show_needs_no_graph(call: Call, answer: Answer, paused: Any) -> None:
    shown = answer("show", "t")
    assert shown["values"] == {"n": 2, "seen": ["first", "wide 0", "wide 1"], "point": POINT}
    assert (shown["thread"], shown["status"], shown["next"], shown["step"]) == ("t", "paused", ["ask"], 2)
    [task] = shown["tasks"]
    assert (task["node"], task["status"], task["error"], task["result"]) == ("ask", "interrupted", None, None)
    [question] = shown["questions"]
    assert question["value"] == {"seen": 3}
    assert question["resume"].startswith("stepwell resume MODULE:GRAPH --thread t --answer ")
    text = call("show", "t").stdout
    for part in ("thread      t, paused", "next        ask", "task        ask: interrupted", question["id"]):
        assert part in text


def test_show_with_the_graph_has_the_same_shape(answer: Answer, paused: Any) -> None:
    alone, exact = answer("show", "t"), answer("show", "t", "--graph", "flows.py:graph")
    assert exact["questions"].pop()["resume"].replace(exact["thread"], "t") != alone["questions"].pop()["resume"]
    assert exact == alone


@pytest.mark.parametrize("how", [[], ["--graph", "flows.py:graph"]], ids=["rows", "graph"])
def test_show_of_an_older_checkpoint_shows_what_its_tasks_did(answer: Answer, paused: Any, how: list[str]) -> None:
    older = answer("history", "t", "--filter", "step=1")["checkpoints"][0]["checkpoint"]
    shown = answer("show", "t", older, *how)
    assert (shown["checkpoint"], shown["values"]["seen"], shown["next"]) == (older, ["first"], ["wide", "wide"])
    assert [(task["status"], task["result"]) for task in shown["tasks"]] == [
        ("succeeded", {"seen": ["wide 0"]}),
        ("succeeded", {"seen": ["wide 1"]}),
    ]


def test_show_of_a_failed_thread_keeps_the_finished_sibling(call: Call, answer: Answer) -> None:
    call("run", "flows.py:fails", "--thread", "u", "--input", "{}", status=1)
    alone, exact = answer("show", "u"), answer("show", "u", "--graph", "flows.py:fails")
    tasks = {task["node"]: task for task in alone["tasks"]}
    assert tasks["broken"]["status"] == "failed"
    assert tasks["broken"]["error"].startswith("ValueError(")
    assert tasks["first"]["result"]["seen"] == ["first"]
    assert alone["tasks"] == exact["tasks"]
    assert alone["next"] == exact["next"] == ["broken"]
    assert (alone["values"]["seen"], exact["values"]["seen"]) == ([], ["first"])  # reducers are the graph's


def test_commands_that_look_make_no_database(call: Call, folder: Any) -> None:
    for words in (["threads"], ["history", "t"], ["show", "t"], ["verify"]):
        assert "error[unknown_database]: " in call(*words, status=3).stderr
    assert list(folder.iterdir()) == []


def test_version_names_what_it_stands_on(call: Call, answer: Answer) -> None:
    assert sorted(answer("version")) == ["python", "sqlite", "stepwell"]
    assert re.fullmatch(r"stepwell \S+ \(Python [\d.]+\w*, SQLite [\d.]+\)\n", call("version").stdout)
