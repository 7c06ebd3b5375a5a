"""`stepwell fork, retry, tree, show A B`: a thread's branches, made and seen from the command line."""

from typing import Any

import pytest

from tests.cli.calls import FLOWS, Answer, Call, witnessed


@pytest.fixture
def steps(answer: Answer) -> dict[int, str]:
    """The checkpoints of thread `t`, by step: it waits in `ask`, after `first` and two of `wide`."""
    answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 2}')
    return {row["step"]: row["checkpoint"] for row in answer("history", "t")["checkpoints"]}


def fork(answer: Answer, *words: str) -> Any:
    return answer("fork", "flows.py:graph", "--thread", "t", *words)


def test_a_fork_begins_a_lineage_that_the_thread_goes_on_with(
    steps: dict[int, str], call: Call, answer: Answer, folder: Any
) -> None:
    made = fork(answer, "--checkpoint", steps[0])
    assert made == {
        "thread": "t",
        "lineage": 1,
        "checkpoint": made["checkpoint"],
        "step": 1,
        "next": ["first"],
        "forked_from": {"thread": "t", "checkpoint": steps[0]},
        "resume": f"stepwell resume {FLOWS}:graph --thread t",
    }
    assert len(witnessed(folder)) == 3  # nothing ran
    again = answer("resume", "flows.py:graph", "--thread", "t")
    assert (again["status"], again["values"]["seen"]) == ("paused", ["first", "wide 0", "wide 1"])
    assert answer("show", "t", steps[2])["values"]["seen"] == ["first", "wide 0", "wide 1"]


def test_a_fork_may_be_edited_as_a_node(steps: dict[int, str], call: Call, answer: Answer) -> None:
    made = fork(answer, "--checkpoint", steps[1], "--values", '{"seen": ["by hand"]}', "--as-node", "wide")
    assert made["next"] == ["ask"]
    assert answer("show", "t")["values"]["seen"] == ["first", "by hand"]
    told = call("fork", "flows.py:graph", "--thread", "t", "--checkpoint", steps[1])
    newest = answer("show", "t")["checkpoint"]
    assert told.stdout == f"thread t: lineage 2 at {newest}, next: wide x2\n"
    assert told.stderr == f"go on: stepwell resume {FLOWS}:graph --thread t\n"


def test_a_fork_into_another_thread_leaves_this_one_alone(steps: dict[int, str], answer: Answer, call: Call) -> None:
    before = answer("history", "t")
    made = fork(answer, "--into", "u")
    assert (made["thread"], made["lineage"], made["forked_from"]["thread"]) == ("u", 0, "t")
    assert answer("show", "u")["values"] == answer("show", "t")["values"]
    assert answer("history", "t") == before
    taken = call("fork", "flows.py:graph", "--thread", "t", "--into", "u", status=2)
    assert taken.stderr == (
        "error[thread_exists]: Thread u is not empty, and nothing is written over it. Name another one, or `delete` it"
        " first.\n"
    )


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["--thread", "t", "--checkpoint", "nope"], 3, "unknown_checkpoint"),
        (["--thread", "nope"], 3, "unknown_thread"),
        (["--thread", "t", "--values", "{", "--as-node", "ask"], 2, "usage_error"),
        (["--thread", "t", "--as-node", "nobody"], 2, "invalid_update"),
        (["--thread", "t", "--into", ""], 2, "usage_error"),
    ],
    ids=str,
)
def test_a_fork_that_makes_no_sense_writes_nothing(
    steps: dict[int, str], call: Call, answer: Answer, words: list[str], status: int, code: str
) -> None:
    before = answer("threads")
    result = call("fork", "flows.py:graph", *words, status=status)
    assert result.stderr.startswith(f"error[{code}]: ")
    assert result.stderr.count("\n") == 1
    assert answer("threads") == before


def test_retry_runs_what_failed_and_nothing_else(call: Call, folder: Any) -> None:
    call("run", "flows.py:fails", "--thread", "t", "--input", "{}", status=1)
    result = call("retry", "flows.py:fails", "--thread", "t", status=1)
    assert result.stderr.splitlines()[-1].startswith(
        "error[node_failed]: Node 'broken' of thread 't' raised ValueError"
    )
    assert witnessed(folder) == ["first"]


def test_retry_without_a_failure_says_what_to_do(steps: dict[int, str], call: Call) -> None:
    result = call("retry", "flows.py:graph", "--thread", "t", status=2)
    assert result.stderr == (
        "error[nothing_to_retry]: Thread t has no failed task to retry. `resume` goes on with it; `retry --task NODE`"
        " runs a planned task anew.\n"
    )


def test_named_tasks_run_anew_and_tell_of_it(steps: dict[int, str], call: Call, answer: Answer, folder: Any) -> None:
    words = ["retry", "flows.py:graph", "--thread", "t", "--checkpoint", steps[1], "--task", "wide"]
    result = call(*words)
    assert "step 3: wide x2" in result.stderr
    assert sorted(witnessed(folder)) == ["first", "wide 0", "wide 0", "wide 1", "wide 1"]
    assert answer("show", "t")["lineage"] == 1
    unknown = call("retry", "flows.py:graph", "--thread", "t", "--task", "nobody", status=3)
    assert "plans no task nobody. Planned there: ask (" in unknown.stderr


def test_resume_at_a_checkpoint_replays_from_there(steps: dict[int, str], answer: Answer, folder: Any) -> None:
    replayed = answer("resume", "flows.py:graph", "--thread", "t", "--checkpoint", steps[1])
    assert (replayed["status"], replayed["values"]["seen"]) == ("paused", ["first", "wide 0", "wide 1"])
    assert sorted(witnessed(folder)) == ["first", "wide 0", "wide 0", "wide 1", "wide 1"]
    [question] = replayed["questions"]
    done = answer("resume", "flows.py:graph", "--thread", "t", "--answer", f"{question['id']}=true")
    assert (done["status"], answer("show", "t")["lineage"]) == ("finished", 1)


def test_an_answer_at_an_older_checkpoint_forks(steps: dict[int, str], answer: Answer) -> None:
    answer("resume", "flows.py:graph", "--thread", "t", "--answer", "1")
    again = answer("resume", "flows.py:graph", "--thread", "t", "--checkpoint", steps[2], "--answer", "2")
    assert (again["status"], again["values"]["answer"]) == ("finished", 2)
    assert answer("tree", "t")["lineages"][0]["children"][0]["forked_from"]["checkpoint"] == steps[2]


def test_the_tree_shows_fork_points_heads_and_which_lineage_goes_on(
    steps: dict[int, str], call: Call, answer: Answer
) -> None:
    one = fork(answer, "--checkpoint", steps[1])["checkpoint"]
    fork(answer, "--checkpoint", steps[0])
    two = fork(answer, "--checkpoint", one)["checkpoint"]

    def shape(lineage: Any) -> Any:
        origin = lineage["forked_from"] and lineage["forked_from"]["checkpoint"]
        return lineage["lineage"], origin, [shape(child) for child in lineage["children"]]

    [root] = answer("tree", "t")["lineages"]
    assert shape(root) == (0, None, [(1, steps[1], [(3, one, [])]), (2, steps[0], [])])
    assert root["head"] == {"checkpoint": steps[2], "step": 2, "next": ["ask"]}
    last = root["children"][0]["children"][0]
    assert (root["current"], last["current"], last["head"]["checkpoint"]) == (False, True, two)
    lines = call("tree", "t").stdout.splitlines()
    assert [line[:9].rstrip() for line in lines] == ["lineage", "  0", "    1", "*     3", "    2"]
    assert lines[3].split() == ["*", "3", "2", one, "3", two, "wide", "x2"]


def test_a_history_may_be_that_of_one_lineage(steps: dict[int, str], call: Call, answer: Answer) -> None:
    made = fork(answer, "--checkpoint", steps[1])["checkpoint"]
    line = [row["checkpoint"] for row in answer("history", "t", "--lineage", "1")["checkpoints"]]
    assert line == [made, steps[1], steps[0], steps[-1]]
    page = answer("history", "t", "--lineage", "1", "--limit", "2")
    assert page["more"] == steps[1]
    rest = answer("history", "t", "--lineage", "1", "--before", steps[1])["checkpoints"]
    assert [row["checkpoint"] for row in rest] == [steps[0], steps[-1]]
    none = call("history", "t", "--lineage", "5", status=2)
    assert none.stderr == "error[usage_error]: Thread 't' has no lineage 5. `tree` shows those it has.\n"


@pytest.mark.parametrize("how", [[], ["--graph", "flows.py:graph"]], ids=["rows", "graph"])
def test_show_with_two_checkpoints_shows_what_differs(
    steps: dict[int, str], call: Call, answer: Answer, how: list[str]
) -> None:
    difference = answer("show", "t", steps[0], steps[2], *how)
    assert [difference[side]["step"] for side in ("from", "to")] == [0, 2]
    assert {
        tuple(change["path"]): (change["change"], change["from"], change["to"]) for change in difference["values"]
    } == {
        ("seen", 0): ("added", None, "first"),
        ("seen", 1): ("added", None, "wide 0"),
        ("seen", 2): ("added", None, "wide 1"),
        ("point",): ("added", None, {"$type": "flows:Point", "$value": {"x": 2, "label": "a marker in a body"}}),
    }
    lines = call("show", "t", steps[2], steps[1], *how).stdout.splitlines()
    assert lines[0] == "thread  t, paused"
    assert lines[3:] == ["next    ask -> wide x2", '- seen[1]: "wide 0"', '- seen[2]: "wide 1"']
    assert call("show", "t", steps[1], steps[1], *how).stderr == "the values are the same\n"
    assert call("show", "t", steps[1], "nope", *how, status=3).stderr.startswith("error[unknown_checkpoint]: ")
