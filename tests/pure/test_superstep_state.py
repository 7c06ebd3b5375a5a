"""Identity, activation numbers and order: what tells two tasks apart, and what must not."""

import pytest
from hypothesis import given, strategies as st

from stepwell.graph.policies import TimeoutPolicy
from stepwell.graph.types import MISSING
from stepwell.ids import TaskIds, frame, interrupt_id, structural_hash
from stepwell.superstep.state import Base, Identity, Planned, State, Task, merge_order, plan_tasks, position_id
from tests.pure.model.parts import base_of, identity, plan_of, pulls, sends, tasks_of

FIELDS = Identity("graph", "v1", "thread", "ns", "checkpoint")


def task(of: Identity = FIELDS, node: str = "a", at: int | None = None, activation: int = 0) -> Task:
    return Task(Planned(node, at), activation, of)


# -- task ids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", Identity._fields)
def test_a_task_id_changes_with_each_field_of_its_identity(field: str) -> None:
    """INV-6: graph id, version, thread, namespace and base checkpoint, all of them."""
    assert task(FIELDS._replace(**{field: "other"})).id != task().id


def test_a_task_id_changes_with_the_path_and_with_nothing_else_of_the_task() -> None:
    """INV-6: worker, attempt, argument, timeout and activation are not in it."""
    others = [task(node="b"), task(at=0), task(at=1), task(node="b", at=0)]
    assert len({task().id, *(other.id for other in others)}) == 5
    assert Task(Planned("a", None, {"any": "argument"}, TimeoutPolicy(9.0)), 7, FIELDS).id == task().id


def test_a_task_id_does_not_change_with_what_is_recorded_on_its_base() -> None:
    """INV-6: an attempt, an answer or an outcome leaves the identity as it is."""
    base = base_of(plan_of(), *pulls("a", "b"))
    before = [task.id for task in base.tasks]
    base.attempted(before[0], 3, 1, 2)
    base.answer(before[0], "q", 1)
    base.outcomes[1] = None
    again = Base(base.state, base.identity, lineage=4, seq=9, digest=b"other")
    assert [task.id for task in again.tasks] == before


def test_task_ids_are_32_hex_digits_and_questions_have_their_own() -> None:
    assert len(task().id) == 32 and int(task().id, 16) >= 0
    first, second = interrupt_id(task().id, "node/interrupt/0"), interrupt_id(task().id, "node/interrupt/1")
    assert len({task().id, first, second}) == 3


def test_the_following_identity_is_of_another_checkpoint_and_the_version_that_plans_it() -> None:
    following = FIELDS.following("next", "v2")
    assert following == FIELDS._replace(checkpoint_id="next", version="v2")


texts = st.text(max_size=6)


@given(st.lists(texts, min_size=5, max_size=5), st.lists(texts, min_size=5, max_size=5))
def test_no_two_identities_share_an_id(left: list[str], right: list[str]) -> None:
    """INV-14: fields are framed, so no choice of names moves a boundary between them."""
    same = left == right
    assert (TaskIds(*left).of("a", None) == TaskIds(*right).of("a", None)) is same


@given(texts, texts)
def test_text_cannot_be_moved_from_one_field_to_the_next(left: str, right: str) -> None:
    """INV-14: joined strings would collide here."""
    ids = {TaskIds(left + right, "", "t", "", "c").of("a", None), TaskIds(left, right, "t", "", "c").of("a", None)}
    assert len(ids) == (1 if right == "" else 2)


fields = st.recursive(
    st.one_of(st.text(max_size=4), st.binary(max_size=4), st.integers(-9, 9), st.none()),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)


@given(st.lists(fields, max_size=4), st.lists(fields, max_size=4))
def test_different_fields_have_different_frames(left: list[object], right: list[object]) -> None:
    """INV-14: the frame is injective over types and boundaries."""
    assert (frame(*left) == frame(*right)) is (repr(left) == repr(right))


def test_a_node_named_like_an_index_or_a_separator_is_no_other_node() -> None:
    """INV-14: names may hold anything the graph allows."""
    names = ["a", "a0", "a/0", "0", "pull", "push", "a\x00", "a1:"]
    ids = {task(node=name, at=at).id for name in names for at in (None, 0, 1)}
    assert len(ids) == 3 * len(names)


def test_what_is_no_text_number_or_tuple_is_refused_by_the_frame() -> None:
    with pytest.raises(TypeError, match="cannot hash a float structurally"):
        structural_hash("task", 1.0)


# -- positions --------------------------------------------------------------------------------------------------------


def test_a_position_stays_over_forks_and_edits_and_changes_with_the_activation() -> None:
    """INV-6: it is what an old interrupt id is mapped by."""
    here = position_id(task(), "q")
    assert position_id(task(FIELDS._replace(checkpoint_id="fork", version="v2")), "q") == here
    others = [task(activation=1), task(node="b"), task(FIELDS._replace(namespace="child"))]
    assert len({here, position_id(task(), "r"), *(position_id(other, "q") for other in others)}) == 5


# -- activation numbers -----------------------------------------------------------------------------------------------


def activations(*planned: Planned, **known: int) -> list[tuple[str, int | None, int]]:
    return [(task.node, task.index, task.activation) for task in tasks_of(*planned, activations=known)]


def test_a_node_goes_on_counting_where_the_lineage_stands() -> None:
    assert activations(*pulls("a")) == [("a", None, 0)]
    assert activations(*pulls("a"), a=3, b=9) == [("a", None, 3)]
    assert activations(*pulls("a", "b"), a=3) == [("a", None, 3), ("b", None, 0)]


def test_activations_within_a_superstep_follow_merge_order() -> None:
    """The pull comes first although sends are listed first."""
    planned = (*sends("a", "b", "a"), *pulls("a"))
    assert activations(*planned, a=5) == [("a", 0, 6), ("b", 1, 0), ("a", 2, 7), ("a", None, 5)]


@given(st.lists(st.sampled_from("ab"), max_size=5), st.sets(st.sampled_from("ab")), st.integers(0, 3))
def test_activations_of_a_node_are_consecutive_and_each_used_once(
    sent: list[str], pulled: set[str], before: int
) -> None:
    tasks = tasks_of(*sends(*sent), *pulls(*sorted(pulled)), activations={"a": before, "b": before})
    for node in "ab":
        numbers = sorted(task.activation for task in tasks if task.node == node)
        assert numbers == list(range(before, before + len(numbers)))


# -- orders -----------------------------------------------------------------------------------------------------------


def test_listing_order_is_the_order_of_next() -> None:
    tasks = plan_tasks(State({}, (*sends("c", "b"), *pulls("a", "d"))), identity())
    assert [(task.node, task.index) for task in tasks] == [("c", 0), ("b", 1), ("a", None), ("d", None)]
    assert merge_order(tasks) == [2, 3, 0, 1]
    assert tasks[0].path == ("__pregel_push", 0, False)
    assert tasks[2].path == ("__pregel_pull", "a")


def test_a_base_finds_its_tasks_by_id() -> None:
    base = base_of(plan_of(), *pulls("a", "b"))
    assert [base.task_index(task.id) for task in base.tasks] == [0, 1]
    assert base.task_index("0" * 32) is None


def test_a_pull_has_no_argument_and_none_is_one() -> None:
    pull, send = tasks_of(Planned("a"), Planned("a", 0, None))[::1]
    assert pull.arg is MISSING
    assert send.arg is None
