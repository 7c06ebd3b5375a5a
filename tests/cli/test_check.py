"""`stepwell check`: which threads a changed graph could not go on with, found before it is deployed."""

from pathlib import Path

import pytest

from tests.cli.calls import Answer, Call

CHANGED = Path(__file__).with_name("changed.py")


@pytest.fixture
def threads(answer: Answer) -> None:
    """Two threads that wait in `review`, one that is finished, and one of another graph."""
    for name, n in (("one", 1), ("zero", 0), ("done", 2)):
        answer("run", f"{CHANGED}:before", "--thread", name, "--input", f'{{"n": {n}}}')
    answer("resume", f"{CHANGED}:before", "--thread", "done", "--answer", "true")
    answer("run", f"{CHANGED}:other", "--thread", "else", "--input", "{}")


def check(answer: Answer, graph: str, *words: str, stuck: bool) -> dict[str, list[str]]:
    """Return what each stuck thread lacks."""
    found = answer("check", f"{CHANGED}:{graph}", *words, status=1 if stuck else 0)
    assert found["other_graphs"] == {"other": 1}
    return {thread["thread"]: thread["missing"] for thread in found["stuck"]}


def test_a_graph_that_has_not_changed_goes_on_with_everything(threads: None, call: Call, answer: Answer) -> None:
    assert check(answer, "before", stuck=False) == {}
    result = call("check", f"{CHANGED}:before")
    assert result.stdout == ""
    assert result.stderr == "graph g: 2 threads checked, 0 could not go on; not looked at: 1 of other\n"


def test_Q5_threads_that_are_stuck_are_listed_with_the_reason(threads: None, call: Call, answer: Answer) -> None:
    why = "node 'review', which asks an open question"
    assert check(answer, "renamed", stuck=True) == {"one": [why], "zero": [why]}
    lines = call("check", f"{CHANGED}:renamed", status=1).stdout.splitlines()
    assert sorted(lines[::2]) == [
        "one (paused, written by version '1') lacks",
        "zero (paused, written by version '1') lacks",
    ]
    assert set(lines[1::2]) == {f"  {why}"}


def test_an_alias_frees_them(threads: None, answer: Answer) -> None:
    assert check(answer, "aliased", stuck=False) == {}


def test_a_migration_is_tried_on_the_values_of_each_thread(threads: None, answer: Answer) -> None:
    assert set(check(answer, "retyped", stuck=True)) == {"one", "zero"}
    found = check(answer, "migrated", stuck=True)
    assert list(found) == ["zero"]
    assert "ZeroDivisionError" in found["zero"][0]


def test_finished_threads_are_asked_whether_they_could_take_an_input(threads: None, answer: Answer) -> None:
    assert set(check(answer, "retyped", "--all", stuck=True)) == {"one", "zero", "done"}
    assert set(check(answer, "renamed", "--all", stuck=True)) == {"one", "zero"}


def test_a_graph_that_refuses_changes_says_what_has_changed(threads: None, answer: Answer) -> None:
    found = check(answer, "pinned", stuck=True)
    assert "on_change=\"raise\", and node 'approve' is new" in found["one"]


def test_nothing_is_written(threads: None, answer: Answer) -> None:
    before = answer("history", "one"), answer("threads")
    check(answer, "migrated", stuck=True)
    assert (answer("history", "one"), answer("threads")) == before


def test_a_database_that_is_not_there_is_not_made(call: Call, folder: Path) -> None:
    result = call("check", f"{CHANGED}:before", status=3)
    assert result.stderr.startswith("error[unknown_database]")
    assert not (folder / "stepwell.db").exists()
