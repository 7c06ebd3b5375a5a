"""Answers find their questions, or are refused: nothing is guessed (INV-8)."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from stepwell.errors import AmbiguousAnswerError, InterruptAnsweredError, UnknownInterruptError
from stepwell.graph.types import Answer, Command
from stepwell.superstep.answer import Answered, id_map, match_answers, open_now, resumes
from stepwell.superstep.state import Base
from tests.pure.model.parts import asks, base_of, plan_of, pulls

PLAN = plan_of()
OTHER, OLD = "0" * 32, "f" * 32


def asking(*call_ids: str) -> tuple[Base, list[str]]:
    """Return a base on which tasks a, b, ... ask one question each, and the ids."""
    base = base_of(PLAN, *pulls(*"abcd"[: len(call_ids)]))
    return base, [asks(base, i, call).questions[0].interrupt_id for i, call in enumerate(call_ids)]


def match(base: Base, resume: Any, aliases: Any = None, answered: Any = ()) -> list[tuple[str, str, Any]]:
    found: list[Answered] = match_answers("t", list(open_now(base)), resume, aliases or {}, answered)
    return [(answer.task.node, answer.question.call_id, answer.value) for answer in found]


# -- one value --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, False, 0, "", {}, [], {"a": 1}, {OTHER: 1, "b": 2}, {OTHER.upper() + "G": 1}])
def test_any_value_answers_the_one_open_question(value: Any) -> None:
    """INV-8: None is an answer, and so is a dict that is no map of ids."""
    base, _ = asking("q")
    assert match(base, value) == [("a", "q", value)]


def test_an_answer_in_a_wrapper_is_a_value_whatever_it_looks_like() -> None:
    base, (asked,) = asking("q")
    assert match(base, Answer({asked: 1})) == [("a", "q", {asked: 1})]
    assert match(base, Answer({OTHER: 1})) == [("a", "q", {OTHER: 1})]
    assert match(base, {asked: Answer({OTHER: 1})}) == [("a", "q", {OTHER: 1})]


def test_one_value_for_several_questions_is_ambiguous_and_names_them() -> None:
    base, ids = asking("q", "r")
    for value in ("yes", Answer("yes"), None):
        with pytest.raises(AmbiguousAnswerError, match="must specify the interrupt id") as raised:
            match(base, value)
        assert raised.value.fields()["open_ids"] == ids


def test_two_questions_of_one_task_are_two_questions() -> None:
    base = base_of(PLAN, *pulls("a"))
    asked = asks(base, 0, "q", "r").questions
    with pytest.raises(AmbiguousAnswerError):
        match(base, "yes")
    assert match(base, {asked[1].interrupt_id: "yes"}) == [("a", "r", "yes")]
    base.answer(base.tasks[0].id, "r", "yes")
    assert match(base, "also") == [("a", "q", "also")]


def test_a_value_where_nothing_is_asked_is_refused() -> None:
    with pytest.raises(UnknownInterruptError, match="no open question to answer"):
        match(base_of(PLAN, *pulls("a")), "yes")


# -- a map of ids -----------------------------------------------------------------------------------------------------


def test_a_map_answers_each_question_it_names_and_no_other() -> None:
    base, ids = asking("q", "r", "s")
    assert match(base, {ids[2]: None, ids[0]: 1}) == [("c", "s", None), ("a", "q", 1)]


@pytest.mark.parametrize("beside", [True, False])
def test_a_map_with_an_unknown_id_is_refused_whole(beside: bool) -> None:
    base, ids = asking("q", "r")
    given = {OTHER: 1, ids[0]: 2} if beside else {OTHER: 1}
    with pytest.raises(UnknownInterruptError) as raised:
        match(base, given)
    assert (raised.value.fields()["interrupt_ids"], raised.value.fields()["open_ids"]) == ([OTHER], ids)


def test_a_question_is_answered_at_most_once() -> None:
    """INV-8: the second answer is an error that says so, also while siblings are open."""
    base, ids = asking("q", "r")
    base.answer(base.tasks[0].id, "q", None)
    with pytest.raises(InterruptAnsweredError) as raised:
        match(base, {ids[0]: 2}, answered={ids[0]})
    assert raised.value.fields()["open_ids"] == [ids[1]]
    with pytest.raises(UnknownInterruptError):
        match(base, {ids[0]: 2, OTHER: 1}, answered={ids[0]})


# -- ids from before an edit or fork ----------------------------------------------------------------------------------


def test_an_old_id_answers_the_question_at_its_place() -> None:
    """INV-8: an id given to a user goes on working."""
    base, ids = asking("q", "r")
    assert match(base, {OLD: 5}, aliases={OLD: ids[1]}) == [("b", "r", 5)]


def test_an_old_id_of_a_question_that_is_gone_is_unknown() -> None:
    base, _ = asking("q")
    with pytest.raises(UnknownInterruptError):
        match(base, {OLD: 5}, aliases={OLD: OTHER})


def test_old_and_new_id_of_one_question_in_one_map_are_two_answers_to_it_and_refused() -> None:
    """INV-8: each question is answered at most once, under whatever names."""
    base, ids = asking("q", "r")
    with pytest.raises((UnknownInterruptError, AmbiguousAnswerError, InterruptAnsweredError)):
        match(base, {ids[0]: "yes", OLD: "no"}, aliases={OLD: ids[0]})


# -- what looks like what ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "is_map"),
    [
        ({OTHER: 1}, True),
        ({OTHER: 1, OLD: 2}, True),
        ({OTHER[:-1]: 1}, False),
        ({OTHER + "\n": 1}, False),
        ({OTHER.replace("0", "A"): 1}, False),
        ({OTHER: 1, 2: 3}, False),
        ({1: 2}, False),
        ({}, False),
        ("x", False),
    ],
)
def test_only_a_dict_whose_every_key_is_32_lowercase_hex_digits_is_a_map(value: Any, is_map: bool) -> None:
    assert (id_map(value) is not None) is is_map


def test_a_command_resumes_iff_resume_was_given() -> None:
    assert resumes(Command(resume=None))
    assert not resumes(Command(update={"a": 1}, goto="b"))


@given(st.sets(st.integers(0, 3)), st.sets(st.integers(0, 3)))
def test_matching_answers_exactly_the_named_open_questions(named: set[int], answered: set[int]) -> None:
    """INV-8 and INV-14: over every subset, a map reaches only what it names, and only while it is open."""
    base, ids = asking("q0", "q1", "q2", "q3")
    for i in answered:
        base.answer(base.tasks[i].id, f"q{i}", "before")
    given = {ids[i]: i for i in named}
    if named & answered:
        with pytest.raises((UnknownInterruptError, InterruptAnsweredError)):
            match(base, given, answered={ids[i] for i in answered})
    elif given:
        assert {(node, value) for node, _, value in match(base, given)} == {("abcd"[i], i) for i in named}
