"""Bodies: what is written reads back the same, and bytes that were not written so are refused, never half-read."""

from collections.abc import Callable
from typing import Any

import ormsgpack
import pytest
from hypothesis import given, strategies as st

from stepwell.errors import CorruptRecordError, StepwellError, UnserializableValueError
from stepwell.graph.policies import TimeoutPolicy
from stepwell.graph.types import MISSING, Send
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.items import DELETE, PUT, TOUCH, ItemWrite
from stepwell.superstep.merge import merge
from stepwell.superstep.outcome import Cancelled, Failed, Interrupted, Question, Returned, Succeeded
from stepwell.superstep.state import Base, Planned, State, Task
from tests.pure.model.parts import base_of, codec_of, done, identity, plan_of, pulls, state_of

PLAN = plan_of(joins=["abc"], defer="d")
CODEC = codec_of(PLAN)
TASK = Base(State({}, pulls("a")), identity()).tasks[0]

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.binary(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.lists(inner, max_size=2).map(tuple),
    ),
    max_leaves=6,
)
seconds = st.none() | st.floats(0.1, 9)
limits = st.builds(TimeoutPolicy, seconds, seconds, st.sampled_from(["auto", "heartbeat"])).map(TimeoutPolicy.coerce)
writes = st.lists(st.tuples(st.sampled_from(["log", "total", "last"]), values), max_size=4).map(tuple)
routes = st.lists(
    st.one_of(st.sampled_from("abcd"), st.builds(Send, st.sampled_from("abcd"), values, timeout=limits)), max_size=3
).map(tuple)  # fmt: skip
times = st.integers(0, 2**62)
item_writes = st.lists(
    st.builds(
        ItemWrite, st.sampled_from([PUT, DELETE, TOUCH]), st.text(), st.text(), times, st.binary(), st.none() | times
    ),
    max_size=2,
).map(tuple)
kept = st.one_of(st.none(), st.builds(Returned, writes, routes, item_writes))
questions = st.lists(st.builds(Question, st.text(max_size=4), st.text(max_size=4), values), max_size=3).map(tuple)


def test_a_fork_keeps_an_outcome_without_its_item_writes() -> None:
    wrote = (ItemWrite(PUT, "users", "k", 1, b"x"),)
    returned = Returned((("log", [1]),), ("b",), wrote)
    success = layout.encode_succeeded(CODEC, PLAN, TASK, Succeeded(*returned))
    bare = layout.without_items(lifecycle.SUCCEEDED, success)
    assert layout.decode_succeeded(CODEC, bare, "r") == Succeeded(*returned[:2])
    for kept, expected in ((returned, Returned(*returned[:2])), (None, None)):
        failure = layout.encode_failed(CODEC, PLAN, TASK, Failed("text", None, kept))
        bare = layout.without_items(lifecycle.FAILED, failure)
        assert layout.decode_failed(CODEC, bare, "r") == Failed("text", None, expected)


@pytest.mark.parametrize(
    "stored",
    [None, 5, [None], [[]], [["put", "users", "k", 1, "text", None]], [["other", "n", "k", 1, b"", None]]],
    ids=repr,
)
def test_item_writes_of_another_shape_are_a_corrupt_record(stored: Any) -> None:
    body = ormsgpack.packb([layout.FORMAT, [], [], stored])
    with pytest.raises(CorruptRecordError):
        layout.decode_succeeded(CODEC, body, "record 7")


# -- records ----------------------------------------------------------------------------------------------------------


@given(st.builds(Succeeded, writes, routes, item_writes))
def test_a_success_reads_back(outcome: Succeeded) -> None:
    """INV-12: writes, routes, sends with their arguments, and what it wrote to the item store."""
    assert layout.decode_succeeded(CODEC, layout.encode_succeeded(CODEC, PLAN, TASK, outcome), "r") == outcome


@given(st.text(), kept)
def test_a_failure_reads_back_as_text_with_what_its_node_returned(text: str, returned: Returned | None) -> None:
    """INV-4: a failing router keeps the node's writes."""
    body = layout.encode_failed(CODEC, PLAN, TASK, Failed(text, ValueError("live"), returned))
    assert layout.decode_failed(CODEC, body, "r") == Failed(text, None, returned)
    body = layout.encode_failed(CODEC, PLAN, TASK, Cancelled(text, returned))
    assert layout.decode_cancelled(CODEC, body, "r") == Cancelled(text, returned)


@given(questions, kept)
def test_questions_read_back_in_order(asked: tuple[Question, ...], returned: Returned | None) -> None:
    outcome = Interrupted(asked, returned)
    assert layout.decode_interrupted(CODEC, layout.encode_interrupted(CODEC, PLAN, TASK, outcome), "r") == outcome


@given(values)
def test_an_answer_reads_back(value: Any) -> None:
    """INV-8: None too."""
    assert layout.decode_answer(CODEC, layout.encode_answer(CODEC, "id", "call", value), "r") == ("id", "call", value)


def test_an_attempt_reads_back() -> None:
    assert layout.decode_attempt(layout.encode_attempt("boom", 2, 10, 20), "r") == ("boom", 2, 10, 20)


def test_what_cannot_be_stored_names_channel_path_and_node() -> None:
    """INV-12: before commit, with the place in the state."""
    with pytest.raises(UnserializableValueError, match=r"Node 'a' wrote what cannot be stored: last\['x'\]\[1\]"):
        layout.encode_succeeded(CODEC, PLAN, TASK, done(("last", {"x": [1, object()]})))
    with pytest.raises(UnserializableValueError, match="interrupt"):
        layout.encode_interrupted(CODEC, PLAN, TASK, Interrupted((Question("i", "c", object()),)))


# -- checkpoints ------------------------------------------------------------------------------------------------------


def reloaded(opened: layout.Opened, holders: dict[int, layout.Opened], seq: int) -> dict[str, Any]:
    """Return the values of a checkpoint, each from the body that holds it."""
    return {
        key: CODEC.loads(layout.value_bytes(holders[at] if at != seq else opened, key, "r"), key)
        for key, at in layout.holds_of(opened, seq).items()
    }


planned = st.builds(
    Planned,
    st.sampled_from("abcd"),
    st.none() | st.integers(0, 9),
    values | st.just(MISSING),
    limits,
)
states = st.builds(
    State,
    st.fixed_dictionaries({}, optional={"log": st.lists(st.text(max_size=3)), "total": st.integers(), "last": values}),
    st.lists(planned, max_size=4).map(tuple),
    st.dictionaries(st.sampled_from(["join:a+b:c"]), st.frozensets(st.sampled_from("ab"))),
    st.frozensets(st.just("d")),
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)),
    st.lists(st.sampled_from("abcd"), unique=True).map(tuple),
)


@given(states)
def test_a_state_reads_back_part_by_part(state: State) -> None:
    """INV-5 and INV-12: the live values are those that reading gives."""
    encoded = layout.encode_checkpoint(CODEC, PLAN, state, 5, [], {})
    opened = layout.open_checkpoint(encoded.body, "r")
    assert reloaded(opened, {}, 5) == encoded.values == state.values
    assert layout.decode_next(CODEC, opened.next) == state.next
    assert {join: frozenset(arrived) for join, arrived in opened.barriers.items()} == state.barriers
    assert frozenset(opened.deferred) == state.deferred
    assert (opened.activations, tuple(opened.writers)) == (state.activations, state.writers)


@given(st.lists(st.dictionaries(st.sampled_from(["log", "total", "last"]), st.just([1])), min_size=1, max_size=6))
def test_a_chain_of_supersteps_reads_back_from_the_rows_that_hold_each_value(steps: list[dict[str, Any]]) -> None:
    """INV-5 and INV-13: an unchanged channel is a distance, however long ago it was written."""
    plan = plan_of("a")
    base, holds, rows, seq = base_of(plan, *pulls("a")), dict[str, int](), dict[int, layout.Opened](), 0
    for step in steps:
        written = {key: (7 if key == "total" else list(value)) for key, value in step.items()}
        outcome = done(*written.items())
        merged = merge(plan, base.state, base.tasks, [outcome])
        seq += 3
        for key in merged.changed:
            holds.pop(key, None)
        sources = [layout.Source(base.tasks[0], outcome)]
        encoded = layout.encode_checkpoint(CODEC, plan, merged.state, seq, sources, holds)
        rows[seq] = opened = layout.open_checkpoint(encoded.body, "r")
        assert layout.needs(opened, seq) == set(holds.values())
        holds = layout.holds_of(opened, seq)
        assert reloaded(opened, rows, seq) == encoded.values == merged.state.values
        base = Base(merged.state._replace(next=pulls("a"), values=encoded.values), identity(f"c{seq}"))


def test_a_value_written_once_is_a_pointer_into_its_outcome_and_stored_once() -> None:
    base = base_of(PLAN, *pulls("a"))
    outcome = done(("last", "x" * 1000))
    merged = merge(PLAN, base.state, base.tasks, [outcome])
    body = layout.encode_checkpoint(CODEC, PLAN, merged.state, 1, [layout.Source(base.tasks[0], outcome)], {}).body
    assert len(body) < 1500
    opened = layout.open_checkpoint(body, "r")
    assert opened.channels["last"] == [layout.POINTER, [0, 0]]
    assert reloaded(opened, {}, 1)["last"] == "x" * 1000
    assert layout.inline_outcomes(opened) == [("a", None, layout.encode_succeeded(CODEC, PLAN, TASK, outcome))]


def test_an_outcome_that_a_record_holds_is_stored_by_its_seq() -> None:
    base = base_of(PLAN, *pulls("a", "b"))
    outcomes = [done(("last", "x")), done(("total", 1))]
    merged = merge(PLAN, base.state, base.tasks, outcomes)
    sources = [layout.Source(base.tasks[0], outcomes[0], 4), layout.Source(base.tasks[1], outcomes[1])]
    opened = layout.open_checkpoint(layout.encode_checkpoint(CODEC, PLAN, merged.state, 6, sources, {}).body, "r")
    assert opened.outcomes[0] == ["a", None, 0, 4]
    assert [node for node, _, _ in layout.inline_outcomes(opened)] == ["b"]
    assert opened.channels["last"] == [layout.POINTER, [0, None]]
    assert layout.records_of(opened, "last") == {4}
    assert layout.succeeded_writes(layout.encode_succeeded(CODEC, PLAN, TASK, outcomes[0]), "r") == [
        ["last", CODEC.dumps("x")]
    ]


def test_a_live_value_is_a_copy_that_no_later_change_of_the_original_reaches() -> None:
    """INV-5: what a node still holds of its return value is not the state."""
    mine: list[Any] = [1]
    state = state_of(PLAN, last=mine)
    encoded = layout.encode_checkpoint(CODEC, PLAN, state, 1, [], {})
    mine.append(2)
    assert encoded.values["last"] == [1]


def test_abandoned_tasks_are_named() -> None:
    """INV-4: what is discarded is recorded."""
    body = layout.encode_checkpoint(CODEC, PLAN, state_of(PLAN), 1, [], {}, [TASK]).body
    assert layout.open_checkpoint(body, "r").abandoned == [["a", None, 0]]


# -- bytes that nobody wrote ------------------------------------------------------------------------------------------

Reader = Callable[[bytes], Any]

READERS: dict[str, Reader] = {
    "checkpoint": lambda body: layout.open_checkpoint(body, "record 7"),
    "succeeded": lambda body: layout.decode_succeeded(CODEC, body, "record 7"),
    "failed": lambda body: layout.decode_failed(CODEC, body, "record 7"),
    "cancelled": lambda body: layout.decode_cancelled(CODEC, body, "record 7"),
    "interrupted": lambda body: layout.decode_interrupted(CODEC, body, "record 7"),
    "answer": lambda body: layout.decode_answer(CODEC, body, "record 7"),
    "attempt": lambda body: layout.decode_attempt(body, "record 7"),
}


def _full(task: Task) -> dict[str, bytes]:
    outcome, returned = done(("last", 1), to=["a", Send("b", 2)]), Returned((("total", 1),), ("a",))
    return {
        "checkpoint": layout.encode_checkpoint(CODEC, PLAN, state_of(PLAN, pulls("a"), last=1), 2, [], {}).body,
        "succeeded": layout.encode_succeeded(CODEC, PLAN, task, outcome),
        "failed": layout.encode_failed(CODEC, PLAN, task, Failed("boom", None, returned)),
        "cancelled": layout.encode_failed(CODEC, PLAN, task, Cancelled("stop", returned)),
        "interrupted": layout.encode_interrupted(CODEC, PLAN, task, Interrupted((Question("i", "c", 1),), returned)),
        "answer": layout.encode_answer(CODEC, "i", "c", 1),
        "attempt": layout.encode_attempt("boom", 1, 2, 3),
    }


BODIES = _full(TASK)


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x93",
        ormsgpack.packb([]),
        ormsgpack.packb(7),
        ormsgpack.packb({"a": 1}),
        ormsgpack.packb([0, 1]),
    ],
)
def test_what_is_no_body_is_a_corrupt_record_by_name(kind: str, body: bytes) -> None:
    """INV-10: never half-loaded."""
    with pytest.raises(CorruptRecordError, match="record 7"):
        READERS[kind](body)


@pytest.mark.parametrize("kind", READERS)
def test_a_body_with_too_few_or_too_many_parts_is_a_corrupt_record(kind: str) -> None:
    """INV-10: a body of another kind, or of a later writer, is not guessed at."""
    parts = ormsgpack.unpackb(BODIES[kind], option=ormsgpack.OPT_NON_STR_KEYS)
    for wrong in (parts[:-1], [*parts, None], parts[:1]):
        with pytest.raises(CorruptRecordError, match="record 7"):
            READERS[kind](ormsgpack.packb(wrong, option=ormsgpack.OPT_NON_STR_KEYS))


@pytest.mark.parametrize("kind", [kind for kind in READERS if kind != "checkpoint"])
def test_parts_of_the_wrong_type_are_a_corrupt_record(kind: str) -> None:
    """INV-10: the digest stands before this; the layout refuses on its own all the same."""
    parts = ormsgpack.unpackb(BODIES[kind])
    for i in range(1, len(parts)):
        wrong = [*parts[:i], {"not": "this"} if not isinstance(parts[i], dict) else 7, *parts[i + 1 :]]
        try:
            READERS[kind](ormsgpack.packb(wrong))
        except StepwellError as error:
            assert isinstance(error, CorruptRecordError)


@given(st.sampled_from(sorted(READERS)), st.integers(0, 200), st.integers(0, 7))
def test_a_flipped_bit_never_raises_anything_but_a_named_error(kind: str, place: int, bit: int) -> None:
    """INV-10: a digest finds every flip before this; the layout itself must still not crash on one."""
    body = bytearray(BODIES[kind])
    body[place % len(body)] ^= 1 << bit
    try:
        READERS[kind](bytes(body))
    except StepwellError as error:
        assert str(error)


def test_channel_entries_that_hold_no_value_are_refused() -> None:
    """INV-13: a delta is reserved for later writers."""
    opened = layout.open_checkpoint(BODIES["checkpoint"], "r")
    opened.channels["last"] = [layout.DELTA, b""]
    with pytest.raises(CorruptRecordError, match="entry kind 1"):
        layout.value_bytes(opened, "last", "record 7")


def test_opening_a_checkpoint_decodes_no_user_value() -> None:
    """INV-12: a row can be linked and listed without the types of what it holds."""
    body = layout.encode_checkpoint(CODEC, PLAN, state_of(PLAN, last={"x": (1,)}), 2, [], {}).body
    kind, data = layout.open_checkpoint(body, "r").channels["last"]
    assert (kind, CODEC.loads(data)) == (layout.FULL, {"x": (1,)})
