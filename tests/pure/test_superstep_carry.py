"""Carrying: what an edit or fork keeps of a superstep, under the new identity, and what it leaves behind."""

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from stepwell.superstep import lifecycle
from stepwell.superstep.carry import Record, abandoned, carry, earlier_answers
from stepwell.superstep.state import Base, Planned, Task
from tests.pure.model.parts import base_of, plan_of, pulls, sends

PLAN = plan_of()
OUTCOMES = (lifecycle.SUCCEEDED, lifecycle.FAILED, lifecycle.INTERRUPTED, lifecycle.CANCELLED)


def always(old: Task, new: Task) -> bool:
    return True


def never(old: Task, new: Task) -> bool:
    return False


def records(base: Base, *kinds: str) -> list[Record]:
    """Return one record per task and kind, its body saying which."""
    return [Record(kind, task.id, f"{kind} of {task!r}".encode()) for task in base.tasks for kind in kinds]


def test_tasks_that_stay_keep_their_records_under_their_new_ids_in_the_old_order() -> None:
    """INV-6: the bytes stay, the identity is the new base's."""
    old, new = base_of(PLAN, *pulls("a", "b"), at="old"), base_of(PLAN, *pulls("a", "b"), at="new")
    before = records(old, *OUTCOMES, lifecycle.ANSWER)
    kept = carry(old, new, reversed(before), always)
    assert [record.body for record in kept] == [record.body for record in reversed(before)]
    assert [record.task_id for record in kept] == [new.tasks[1].id] * 5 + [new.tasks[0].id] * 5
    assert {record.task_id for record in kept}.isdisjoint(task.id for task in old.tasks)


def test_attempts_are_not_carried() -> None:
    """A carried task starts with a fresh budget."""
    old, new = base_of(PLAN, *pulls("a"), at="old"), base_of(PLAN, *pulls("a"), at="new")
    assert carry(old, new, records(old, lifecycle.ATTEMPT), always) == []


def test_node_and_index_must_be_the_same() -> None:
    old = base_of(PLAN, *sends("a", "b"), *pulls("a"), at="old")
    new = base_of(PLAN, *sends("b", "b"), *pulls("b"), at="new")
    kept = carry(old, new, records(old, lifecycle.SUCCEEDED), always)
    assert [record.task_id for record in kept] == [new.tasks[1].id]
    assert [repr(task) for task in abandoned(old, new, always)] == ["Task(a[0] #1)", "Task(a #0)"]


def test_the_caller_may_refuse_to_keep_a_task() -> None:
    old, new = base_of(PLAN, *pulls("a"), at="old"), base_of(PLAN, *pulls("a"), at="new")
    assert carry(old, new, records(old, *OUTCOMES), never) == []
    assert abandoned(old, new, never) == list(old.tasks)


def test_records_of_nobody_are_not_carried() -> None:
    old, new = base_of(PLAN, *pulls("a"), at="old"), base_of(PLAN, *pulls("a"), at="new")
    assert carry(old, new, [Record(lifecycle.SUCCEEDED, "0" * 32, b"")], always) == []


planned = st.builds(
    lambda sent, pulled: (*(Planned(node, i, node) for i, node in enumerate(sent)), *pulls(*sorted(pulled))),
    st.lists(st.sampled_from("ab"), max_size=3),
    st.sets(st.sampled_from("abcd")),
)


@given(planned, planned, st.sets(st.sampled_from("abcd")))
def test_every_task_is_either_carried_whole_or_abandoned(
    before: tuple[Planned, ...], after: tuple[Planned, ...], kept_nodes: set[str]
) -> None:
    """INV-4: nothing disappears without being listed."""
    old, new = base_of(PLAN, *before, at="old"), base_of(PLAN, *after, at="new")
    stays: Callable[[Task, Task], bool] = lambda task, _: task.node in kept_nodes  # noqa: E731
    carried = {record.task_id for record in carry(old, new, records(old, lifecycle.SUCCEEDED), stays)}
    dropped = abandoned(old, new, stays)
    places = {(task.node, task.index) for task in new.tasks if task.id in carried}
    assert places | {(task.node, task.index) for task in dropped} == {(task.node, task.index) for task in old.tasks}
    assert len(places) + len(dropped) == len(old.tasks)


# -- answers to earlier questions -------------------------------------------------------------------------------------


def asks_for(call: str) -> Callable[[Record], bool]:
    return lambda record: record.body == f"asks {call}".encode()


@pytest.mark.parametrize(
    ("call", "kept"), [("q1", []), ("q2", [b"answers q1"]), ("q3", [b"answers q1", b"answers q2"])]
)
def test_an_answer_at_an_older_checkpoint_keeps_the_answers_before_its_question(call: str, kept: list[bytes]) -> None:
    history = [
        Record(kind, "t", body)
        for q in ("q1", "q2", "q3")
        for kind, body in ((lifecycle.INTERRUPTED, f"asks {q}".encode()), (lifecycle.ANSWER, f"answers {q}".encode()))
    ]
    others = [Record(lifecycle.ANSWER, "other", b"answers somebody else")]
    assert [record.body for record in earlier_answers([*others, *history], "t", asks_for(call))] == kept
