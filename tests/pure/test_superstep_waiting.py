"""Waits as plain functions: which are open, which are over and by what, and records that read back or are refused."""

from collections.abc import Callable
from typing import Any

import ormsgpack
import pytest
from hypothesis import given, strategies as st

from stepwell.errors import CorruptRecordError
from stepwell.superstep import lifecycle
from stepwell.superstep.decide import Rules, RunTasks, Wait, decide, ending
from stepwell.superstep.outcome import Awaited, Interrupted, Question
from stepwell.superstep.state import Base
from stepwell.superstep.waiting import (
    CAME,
    LATE,
    SIGNAL,
    TIMER,
    Arrived,
    Letter,
    awaited_in,
    decode_arrived,
    decode_wait,
    encode_arrived,
    encode_wait,
    forget_late,
    next_deadline,
    open_waits,
    over_now,
    register,
)
from tests.pure.model.parts import asks, base_of, codec_of, done, plan_of, pulls, sends

PLAN = plan_of()
CODEC = codec_of(PLAN)
FREE = Rules(first_step=1, limit=100)


def waits(base: Base, index: int, *awaited: Awaited) -> Interrupted:
    """Have a task of the base wait."""
    outcome = Interrupted((), None, awaited)
    base.outcomes[index] = outcome
    register(base, base.tasks[index].id, outcome)
    return outcome


def signal(key: str, call_id: str = "call", until: int | None = None) -> Awaited:
    return Awaited(call_id, SIGNAL, key, until)


def timer(until: int, call_id: str = "call") -> Awaited:
    return Awaited(call_id, TIMER, "", until)


def letter(key: str, sent_at: int = 0, name: str = "m") -> Letter:
    return Letter(name, SIGNAL, key, sent_at)


# -- standing still ---------------------------------------------------------------------------------------------------


def test_a_base_whose_tasks_wait_stands_still_as_waiting() -> None:
    base = base_of(PLAN, *sends("d"), *pulls("a"))
    waits(base, 1, signal("x"))
    waits(base, 0, timer(5))
    assert decide(base, FREE) == Wait((), (timer(5), signal("x")))
    assert ending(decide(base, FREE), limit_fails=True) == lifecycle.WAITING


def test_a_question_beside_makes_it_paused() -> None:
    base = base_of(PLAN, *pulls("a", "b"))
    waits(base, 0, signal("x"))
    asked = asks(base, 1, "q")
    assert decide(base, FREE) == Wait(asked.questions, (signal("x"),))
    assert ending(decide(base, FREE), limit_fails=True) == lifecycle.PAUSED


def test_a_breakpoint_is_no_wait() -> None:
    assert Wait(()).status == lifecycle.PAUSED


def test_a_task_whose_wait_is_over_runs_and_no_other() -> None:
    base = base_of(PLAN, *pulls("a", "b"))
    waits(base, 0, signal("x"))
    waits(base, 1, signal("y"))
    base.fresh |= {base.tasks[1].id}
    assert decide(base, FREE) == RunTasks((1,))


def test_what_has_come_is_not_open_any_more() -> None:
    base = base_of(PLAN, *pulls("a"))
    waits(base, 0, signal("x", "one"), signal("y", "two"))
    base.answer(base.tasks[0].id, "one", Arrived(CAME, "x", None))
    assert [awaited.call_id for _, awaited in open_waits(base)] == ["two"]


# -- what is over -----------------------------------------------------------------------------------------------------


def test_a_message_goes_to_the_first_in_merge_order_that_waits_for_it() -> None:
    """INV-5: pulls by name before sends, whatever the listing order."""
    base = base_of(PLAN, *sends("d"), *pulls("b", "a"))
    for index in range(3):
        waits(base, index, signal("x"))
    over = over_now(base, [letter("x", name="one"), letter("x", name="two")], now=0)
    assert [(base.tasks[each.place].node, each.letter and each.letter.message_id) for each in over] == [
        ("a", "one"),
        ("b", "two"),
    ]


@pytest.mark.parametrize(("sent_at", "now", "came"), [(5, 5, True), (5, 99, True), (6, 99, False), (9, 9, False)])
def test_a_message_counts_if_it_was_sent_in_time(sent_at: int, now: int, came: bool) -> None:
    base = base_of(PLAN, *pulls("a"))
    waits(base, 0, signal("x", until=5))
    [over] = over_now(base, [letter("x", sent_at)], now)
    assert (over.letter is not None) is came


def test_a_message_that_came_too_late_for_one_serves_the_next() -> None:
    base = base_of(PLAN, *pulls("a", "b"))
    waits(base, 0, signal("x", until=5))
    waits(base, 1, signal("x"))
    first, second = over_now(base, [letter("x", 6)], now=9)
    assert (first.place, first.letter, second.place, second.letter) == (0, None, 1, letter("x", 6))


def test_nothing_is_over_before_its_time() -> None:
    base = base_of(PLAN, *pulls("a", "b"))
    waits(base, 0, timer(10))
    waits(base, 1, signal("x"))
    assert over_now(base, [letter("y")], now=9) == []
    assert [each.place for each in over_now(base, [], now=10)] == [0]


def test_the_next_deadline_is_the_earliest() -> None:
    assert next_deadline([signal("x"), timer(9), timer(3)]) == 3
    assert next_deadline([signal("x")]) is None


# -- what a task knows ------------------------------------------------------------------------------------------------


def test_a_wait_keeps_the_deadline_it_was_registered_with() -> None:
    """S5"""
    base = base_of(PLAN, *pulls("a"))
    waits(base, 0, timer(10))
    waits(base, 0, timer(99))
    assert base.answers[base.tasks[0].id]["call"] == timer(10)


def test_a_failed_attempt_forgets_what_came_to_nothing_and_nothing_else() -> None:
    base = base_of(PLAN, *pulls("a"))
    task_id = base.tasks[0].id
    known = {"late": Arrived(LATE, "x"), "came": Arrived(CAME, "x", 1), "open": timer(5), "answer": "yes"}
    for call_id, value in known.items():
        base.answer(task_id, call_id, value)
    forget_late(base, task_id)
    assert base.answers[task_id] == {key: value for key, value in known.items() if key != "late"}
    forget_late(base, "another")


# -- records ----------------------------------------------------------------------------------------------------------

text = st.text(max_size=4)
kinds = st.sampled_from(["timer", "signal", "awakeable"])
awaited = st.lists(st.builds(Awaited, text, kinds, text, st.none() | st.integers(0, 2**60)), max_size=3).map(tuple)
questions = st.lists(st.builds(Question, text, text, st.none() | st.integers() | text), max_size=2).map(tuple)


@given(questions, awaited)
def test_a_wait_reads_back(asked: tuple[Question, ...], waited: tuple[Awaited, ...]) -> None:
    outcome = Interrupted(asked, None, waited)
    body = encode_wait(CODEC, PLAN, base_of(PLAN, *pulls("a")).tasks[0], outcome)
    assert decode_wait(CODEC, body, "r") == outcome
    assert awaited_in(body, "r") == waited


@given(text, text, text, st.sampled_from([CAME, LATE]), st.none() | st.integers() | text)
def test_what_arrived_reads_back(call_id: str, key: str, message_id: str, status: str, value: Any) -> None:
    body = encode_arrived(Awaited(call_id, SIGNAL, key, None), message_id, status, CODEC.dumps(value))
    assert decode_arrived(CODEC, body, "r") == (call_id, message_id, Arrived(status, key, value))


def test_nothing_that_arrived_reads_back_as_nothing() -> None:
    body = encode_arrived(signal("x"), "", LATE, b"")
    assert decode_arrived(CODEC, body, "r")[2] == Arrived(LATE, "x", None)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"\xc1", ormsgpack.packb(5), ormsgpack.packb([])),
        *(ormsgpack.packb([0, [], b""]), ormsgpack.packb([1, "x", b""]), ormsgpack.packb([1, [], b"", 4])),
        *(ormsgpack.packb([1, [["c", "timer", "", "soon"]], b""]), ormsgpack.packb([1, [["c", "timer", 5, 5]], b""])),
        *(ormsgpack.packb([1, [["c"]], b""]), ormsgpack.packb([1, ["c"], b""])),
    ],
)
@pytest.mark.parametrize("read", [lambda body: decode_wait(CODEC, body, "r"), lambda body: awaited_in(body, "r")])
def test_bytes_that_are_no_wait_are_refused(read: Callable[[bytes], Any], body: bytes) -> None:
    """INV-10"""
    with pytest.raises(CorruptRecordError):
        read(body)


@pytest.mark.parametrize(
    "parts", [[], [1], [1, "c", "k", "m", "came"], [0, "c", "k", "m", "came", b""], [1, 5, "k", "m", "x", b""]]
)
def test_bytes_that_are_nothing_arrived_are_refused(parts: list[Any]) -> None:
    """INV-10"""
    with pytest.raises(CorruptRecordError):
        decode_arrived(CODEC, ormsgpack.packb(parts), "r")


def test_a_finished_sibling_does_not_wait() -> None:
    base = base_of(PLAN, *pulls("a", "b"))
    waits(base, 0, timer(5))
    base.outcomes[1] = done()
    assert decide(base, FREE) == Wait((), (timer(5),))
