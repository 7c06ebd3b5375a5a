"""`stepwell resume`: answers reach their questions, and nothing is answered that nobody answered."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import Answer, Call, witnessed


def ids(shown: Any) -> list[str]:
    return [question["id"] for question in shown["questions"]]


@pytest.mark.parametrize("given", [True, None, "yes", {"0" * 32: 1}], ids=repr)
def test_an_answer_is_any_json_value_and_reaches_the_node(answer: Answer, given: Any, folder: Path) -> None:
    import json

    answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}')
    done = answer("resume", "flows.py:graph", "--thread", "t", "--answer", json.dumps(given))
    assert (done["status"], done["values"]["answer"], done["next"]) == ("finished", given, [])
    assert witnessed(folder) == ["first", "wide 0"]


def test_several_questions_are_answered_by_id_together_or_one_by_one(answer: Answer) -> None:
    a, b = ids(answer("run", "flows.py:questions", "--thread", "t", "--input", "{}"))
    half = answer("resume", "flows.py:questions", "--thread", "t", "--answer", f"{b}=2")
    assert (half["status"], ids(half)) == ("paused", [a])
    done = answer("resume", "flows.py:questions", "--thread", "t", "--answer", f'{a}="x=y"')
    assert done["values"]["seen"] == ["a x=y", "b 2"]
    a, b = ids(answer("run", "flows.py:questions", "--thread", "u", "--input", "{}"))
    done = answer("resume", "flows.py:questions", "--thread", "u", "--answer", f"{a}=1", "--answer", f"{b}=2")
    assert done["values"]["seen"] == ["a 1", "b 2"]


def test_one_answer_to_several_questions_is_ambiguous(call: Call, answer: Answer) -> None:
    a, b = ids(answer("run", "flows.py:questions", "--thread", "t", "--input", "{}"))
    result = call("resume", "flows.py:questions", "--thread", "t", "--answer", "1", status=2)
    assert result.stderr == (
        f"error[ambiguous_answer]: Thread t has several questions open: {a}, {b}."
        " Say which one you answer: --answer ID=JSON, once for each.\n"
    )


def test_an_answered_question_and_an_unknown_one_are_errors(call: Call, answer: Answer) -> None:
    [question] = ids(answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}'))
    unknown = call("resume", "flows.py:graph", "--thread", "t", "--answer", f"{'0' * 32}=1", status=2)
    assert unknown.stderr.startswith("error[unknown_interrupt]: Thread t has no such question open.")
    answer("resume", "flows.py:graph", "--thread", "t", "--answer", f"{question}=1")
    answered = call("resume", "flows.py:graph", "--thread", "t", "--answer", f"{question}=1", status=2)
    assert answered.stderr.startswith("error[interrupt_answered]: ")


def test_off_a_terminal_a_question_without_an_answer_stays_open(answer: Answer) -> None:
    before = answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}')
    after = answer("resume", "flows.py:graph", "--thread", "t")
    assert (after["status"], after["questions"]) == ("paused", before["questions"])


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (["yes"], "--answer is not JSON"),
        (["NaN"], "NaN is not part of JSON"),
        (["1", "2"], "does not say which question it is for"),
        ([f"{'a' * 32}=1", f"{'a' * 32}=2"], "given twice"),
        ([f"{'a' * 32}="], "--answer is not JSON"),
    ],
)
def test_an_answer_that_cannot_be_meant_is_refused_before_anything_runs(
    call: Call, answers: list[str], reason: str
) -> None:
    words = [word for text in answers for word in ("--answer", text)]
    result = call("resume", "flows.py:graph", "--thread", "t", *words, status=2)
    assert result.stderr.startswith("error[usage_error]: ")
    assert reason in result.stderr


def test_a_failed_thread_is_resumed_with_what_is_missing(call: Call, folder: Path) -> None:
    call("run", "flows.py:fails", "--thread", "t", "--input", "{}", status=1)
    call("resume", "flows.py:fails", "--thread", "t", status=1)
    assert witnessed(folder) == ["first"]


def test_resume_makes_neither_a_database_nor_a_thread(call: Call, answer: Answer, folder: Path) -> None:
    result = call("resume", "flows.py:graph", "--thread", "t", status=3)
    assert result.stderr.startswith("error[unknown_database]: There is no database 'stepwell.db'.")
    assert list(folder.iterdir()) == []
    answer("run", "flows.py:graph", "--thread", "t", "--input", '{"n": 1}')
    missing = call("resume", "flows.py:graph", "--thread", "u", status=3)
    assert missing.stderr == "error[unknown_thread]: There is no thread 'u'. There are 't'; `threads` lists them all.\n"
