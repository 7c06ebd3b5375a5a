"""Deciding: which tasks run, when a run waits, stops or finishes. Always from the base, never from how it got there."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from stepwell.superstep.decide import (
    Decision,
    Finish,
    Rules,
    RunTasks,
    Stop,
    Wait,
    decide,
    first_failure,
    open_questions,
)
from stepwell.superstep.outcome import Cancelled, Failed, Interrupted, Question, Returned
from stepwell.superstep.state import Base, Planned, merge_order
from tests.pure.model.parts import asks, base_of, done, plan_of, pulls, sends

PLAN = plan_of()
FREE = Rules(first_step=1, limit=100)
FAILED = Failed("ValueError()")


def base_with(*outcomes: Any) -> Base:
    base = base_of(PLAN, *pulls(*"abcd"[: len(outcomes)]))
    base.outcomes[:] = outcomes
    return base


# -- which tasks run --------------------------------------------------------------------------------------------------


def test_nothing_planned_is_the_end() -> None:
    assert decide(base_of(PLAN), FREE) == Finish()


def test_on_a_fresh_base_every_task_runs() -> None:
    assert decide(base_of(PLAN, *sends("b", "a"), *pulls("a")), FREE) == RunTasks((0, 1, 2))


def test_only_what_is_missing_runs() -> None:
    """INV-4: a success is not run again; failures, cancellations and unfinished tasks are."""
    base = base_with(done(), None, FAILED, Cancelled())
    assert decide(base, FREE) == RunTasks((1, 2, 3))
    assert decide(base_with(done(), FAILED, done(), done()), FREE) == RunTasks((1,))


def test_when_all_have_succeeded_it_is_time_to_merge() -> None:
    assert decide(base_with(done(), done()), FREE) == RunTasks(())
    assert decide(base_with(done()), FREE) == RunTasks(())


def test_a_failing_router_is_run_again_like_a_failed_node() -> None:
    base = base_with(done(), Failed("boom", None, Returned((("total", 1),), ())))
    assert decide(base, FREE) == RunTasks((1,))


# -- questions --------------------------------------------------------------------------------------------------------


def test_open_questions_wait_and_are_listed_in_listing_order() -> None:
    """INV-8: a task that waits for an answer does not run."""
    base = base_of(PLAN, *sends("d"), *pulls("a", "b"))
    first, second = asks(base, 2, "b1"), asks(base, 0, "d1", "d2")
    base.outcomes[1] = done()
    assert decide(base, FREE) == Wait((*second.questions, *first.questions))


def test_only_the_answered_task_runs_again() -> None:
    """INV-8: unanswered tasks do not re-run."""
    base = base_of(PLAN, *pulls("a", "b", "c"))
    left, _ = asks(base, 0, "q"), asks(base, 1, "q")
    base.outcomes[2] = done()
    base.answer(base.tasks[1].id, "q", None)
    base.fresh |= {base.tasks[1].id}
    assert decide(base, FREE) == RunTasks((1,))
    assert open_questions(base) == left.questions


def test_a_task_runs_again_with_any_one_of_its_questions_answered() -> None:
    base = base_of(PLAN, *pulls("a"))
    asks(base, 0, "q1", "q2")
    base.answer(base.tasks[0].id, "q2", "yes")
    base.fresh |= {base.tasks[0].id}
    assert decide(base, FREE) == RunTasks((0,))
    assert [question.call_id for question in open_questions(base)] == ["q1"]


def test_a_task_that_asked_again_waits_again() -> None:
    base = base_of(PLAN, *pulls("a"))
    base.answer(base.tasks[0].id, "q1", "yes")
    asks(base, 0, "q1", "q2")
    assert [question.call_id for question in decide(base, FREE).questions] == ["q2"]  # type: ignore[union-attr]


def test_beside_an_open_question_failed_siblings_run() -> None:
    base = base_of(PLAN, *pulls("a", "b"))
    asks(base, 0, "q")
    base.outcomes[1] = FAILED
    assert decide(base, FREE) == RunTasks((1,))


# -- breakpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [{"before": frozenset("b")}, {"after": frozenset("x")}])
def test_a_breakpoint_waits_without_a_question_until_the_run_is_resumed_there(rules: Any) -> None:
    base = base_of(PLAN, *pulls("a", "b"), at="here")
    base.state = base.state._replace(writers=("x", "y"))
    assert decide(base, Rules(1, 9, **rules)) == Wait(())
    assert decide(base, Rules(1, 9, **rules, resumed_at="here")) == RunTasks((0, 1))
    assert decide(base, Rules(1, 9, **rules, resumed_at="elsewhere")) == Wait(())


def test_a_breakpoint_of_another_node_stops_nothing() -> None:
    base = base_of(PLAN, *pulls("a"))
    base.state = base.state._replace(writers=("y",))
    assert decide(base, Rules(1, 9, before=frozenset("b"), after=frozenset("x"))) == RunTasks((0,))


def test_a_breakpoint_after_the_last_node_does_not_keep_a_run_from_finishing() -> None:
    base = base_of(PLAN)
    base.state = base.state._replace(writers=("x",))
    assert decide(base, Rules(1, 9, after=frozenset("x"))) == Finish()


# -- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_exactly_as_many_supersteps_run_as_the_limit_says(limit: int) -> None:
    base = base_of(PLAN, *pulls("a"))
    rules = Rules(first_step=4, limit=limit)
    decisions: list[Decision] = []
    for step in range(3, 3 + limit + 1):
        base.state = base.state._replace(step=step)
        decisions.append(decide(base, rules))
    assert decisions == [RunTasks((0,))] * limit + [Stop(limit)]


def test_the_limit_does_not_stop_what_is_over() -> None:
    base = base_of(PLAN)
    base.state = base.state._replace(step=50)
    assert decide(base, Rules(1, 1)) == Finish()


def test_remaining_steps_count_this_one() -> None:
    rules = Rules(first_step=1, limit=4)
    assert [rules.remaining(step) for step in (0, 1, 4)] == [4, 3, 0]


# -- the first failure ------------------------------------------------------------------------------------------------


def test_the_first_failure_is_the_first_in_merge_order() -> None:
    """INV-5: not the one that happened first."""
    base = base_of(PLAN, *sends("a"), *pulls("b", "c"))
    base.outcomes[:] = [FAILED, done(), Cancelled()]
    assert first_failure(base, merge_order(base.tasks)) == 2
    base.outcomes[2] = done()
    assert first_failure(base, merge_order(base.tasks)) == 0
    base.outcomes[0] = done()
    assert first_failure(base, merge_order(base.tasks)) is None


# -- the whole table --------------------------------------------------------------------------------------------------

QUESTION = Interrupted((Question("i", "q", "?"),))
KINDS = [None, done(), FAILED, Cancelled(), QUESTION]


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4), st.sets(st.integers(0, 3)))
def test_a_task_runs_iff_it_is_not_done_and_waits_for_nobody(outcomes: list[Any], answered: set[int]) -> None:
    """INV-4 and INV-8 over every combination of outcomes and answers."""
    base = base_with(*outcomes)
    fresh = [i for i in answered if i < len(outcomes) and outcomes[i] is QUESTION]
    for i in fresh:
        base.answer(base.tasks[i].id, "q", None)
    base.fresh = frozenset(base.tasks[i].id for i in fresh)
    runs = tuple(
        i for i, outcome in enumerate(outcomes)
        if outcome in (None, FAILED, Cancelled()) or (outcome is QUESTION and i in fresh)
    )  # fmt: skip
    expected: Decision = RunTasks(runs)
    if not runs and QUESTION in outcomes:
        expected = Wait(QUESTION.questions * outcomes.count(QUESTION))
    assert decide(base, FREE) == expected


@given(st.permutations(range(4)), st.lists(st.sampled_from(KINDS), min_size=4, max_size=4))
def test_the_order_in_which_outcomes_came_is_not_seen(order: list[int], outcomes: list[Any]) -> None:
    """INV-5: two bases on which the same was recorded in another order decide the same."""
    bases = [base_of(PLAN, *pulls("a", "b", "c", "d")) for _ in range(2)]
    for base, indexes in zip(bases, (range(4), order), strict=True):
        for i in indexes:
            base.outcomes[i] = outcomes[i]
    assert len({repr(decide(base, FREE)) for base in bases}) == 1


def test_a_base_reads_as_what_it_is() -> None:
    base = base_of(PLAN, Planned("b", 0, "x"), *pulls("a"))
    base.outcomes[0] = done()
    assert repr(base) == "Base(step 0, seq 0, 1/2 done, next [Task(b[0] #0), Task(a #0)])"
