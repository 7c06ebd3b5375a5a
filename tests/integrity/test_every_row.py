"""INV-10 for every row there is: damaged in any way, it is named; nothing is answered wrongly; no other thread is hurt;
and the thread goes on from its last good checkpoint as a fork of that checkpoint would.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import pytest

from stepwell import StepwellError
from stepwell.errors import CannotRepairError, NothingToRepairError
from tests.integrity.damaging import CORRUPT, KEYS, Damage, Scene, ask_all, damages, newest_damages, views
from tests.runtime.graphs import thread

LISTS = ("history", "lineages", "journal", "effects", "runs")
"""What lists rows. What is gone from its end cannot say in a list that it was there; `verify` says it."""


REPAIRED = 3
"""Every so many damages are repaired. With the kinds of damage in turn, each kind has its turn in each table."""


class Fork(NamedTuple):
    """What a thread that nothing happened to comes to, forked from one of its checkpoints."""

    values: Any
    next: tuple[str, ...]
    result: str
    done: list[str]


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene()


@pytest.fixture(scope="module")
def forks(scene: Scene) -> dict[str, Fork]:
    return all_forks(scene)


def all_forks(scene: Scene) -> dict[str, Fork]:
    """Return what a fork of each checkpoint comes to, by the checkpoint's id."""
    found = {}
    for row in scene.rows["checkpoints"]:
        scene.restore()
        scene.graph.fork({"configurable": {"thread_id": "t", "checkpoint_id": row["checkpoint_id"]}})
        state = scene.graph.get_state(thread())
        found[row["checkpoint_id"]] = Fork(state.values, state.next, going_on(scene), list(scene.outside.done))
    scene.restore()
    return found


def going_on(scene: Scene) -> str:
    """Go on with the thread; return what that comes to."""
    try:
        return repr(scene.graph.invoke(None, thread()))
    except (StepwellError, ValueError) as error:
        return type(error).__name__


def of_table(scene: Scene, table: str, every: int = 1) -> Iterator[Damage]:
    """Carry out every damage of a table, or every so many, one at a time."""
    return carried_out(scene, islice(damages(scene, table), 0, None, every))


def carried_out(scene: Scene, damages: Iterable[Damage]) -> Iterator[Damage]:
    """Carry out each damage that the database allows, one at a time."""
    for damage in damages:
        scene.restore()
        if scene.damage(damage):
            yield damage
    scene.restore()


def leaves_no_trace(scene: Scene, damage: Damage) -> bool:
    """Tell whether a loss leaves no gap: that of the last record on a checkpoint that is not the newest and that no
    later one follows, and that of the last message that came."""
    is_gone = damage.how == "delete" or damage.column == "thread_id"
    if not is_gone or damage.table not in ("records", "inbox"):
        return False
    if damage.table == "inbox":
        return bool(damage.row["ordinal"] == max(row["ordinal"] for row in scene.rows["inbox"]))
    beside = [row["ordinal"] for row in scene.rows["records"] if row["base_seq"] == damage.row["base_seq"]]
    newest = max(row["seq"] for row in scene.rows["checkpoints"])
    follow = [row["seq"] for row in scene.rows["checkpoints"] if row["parent_seq"] == damage.row["base_seq"]]
    is_counted = any(seq > damage.row["seq"] for seq in follow)
    return bool(damage.row["ordinal"] == max(beside) and damage.row["base_seq"] != newest and not is_counted)


@pytest.mark.parametrize("table", KEYS)
def test_a_damaged_row_is_named_and_answers_nothing_wrong(scene: Scene, table: str) -> None:
    assert missed_or_wrong(scene, of_table(scene, table)) == []


def test_whatever_column_of_the_newest_row_is_damaged_no_older_one_takes_its_place(scene: Scene) -> None:
    assert missed_or_wrong(scene, carried_out(scene, newest_damages(scene))) == []


def missed_or_wrong(scene: Scene, damaged: Iterable[Damage]) -> list[str]:
    """Return what is wrong after each damage: it is not named, answers wrongly, or harms another thread."""
    scene.restore()
    asked, others = views(scene, "t"), views(scene, "other")
    before, beside = ask_all(asked), ask_all(others)
    wrong: list[str] = []
    for damage in damaged:
        table = damage.table
        found = scene.saver.verify()
        about = [fault for fault in found.faults if fault.thread_id == "t" or damage.column == "thread_id"]
        at_the_row = [fault for fault in about if (fault.table, fault.place) == (table, damage.place)]
        if not (about if damage.is_elsewhere else at_the_row) and not leaves_no_trace(scene, damage):
            wrong.append(f"{damage}: verify finds {[*map(str, found.faults)]}")
        gone = damage.row["run_id"] if damage.is_elsewhere and table == "runs" else None
        answers = ask_all({name: view for name, view in asked.items() if gone is None or gone not in name})
        for name, answer in answers.items():
            named = name == "tuple" and damage.column == "checkpoint_id"  # of its parent, which it only names
            if answer not in (before[name], CORRUPT) and not named and not (damage.may_shorten and name in LISTS):
                wrong.append(f"{damage}: {name} answers {answer}")
        if ask_all(others) != beside:
            wrong.append(f"{damage}: the other thread is harmed")
        if [summary.damage for summary in scene.saver.threads() if summary.thread_id == "other"] != [None]:
            wrong.append(f"{damage}: the list of threads is harmed")
    return wrong


@pytest.mark.parametrize("table", KEYS)
def test_a_repaired_thread_is_a_fork_of_its_last_good_checkpoint(
    scene: Scene, forks: dict[str, Fork], table: str
) -> None:
    wrong, repaired = repaired_wrongly(scene, forks, table, REPAIRED)
    assert wrong == []
    assert repaired


def repaired_wrongly(scene: Scene, forks: dict[str, Fork], table: str, every: int) -> tuple[list[str], int]:
    """Repair every so many damages of a table. Return what is wrong then, and how many were repaired."""
    wrong: list[str] = []
    repaired = 0
    for damage in of_table(scene, table, every):
        stood = {(fault.table, fault.place) for fault in scene.saver.verify().faults}
        try:
            done = scene.saver.repair("t", by="ann", reason="a test")
        except NothingToRepairError:
            assert leaves_no_trace(scene, damage)
            continue
        except CannotRepairError as error:  # nothing says any more whose effect that was
            assert (table, damage.column) == ("effects", "thread_id")
            assert "nobody can tell what has happened" in str(error)
            continue
        repaired += 1
        state = scene.graph.get_state(thread())
        after = scene.saver.verify("t")
        came_to = Fork(state.values, state.next, going_on(scene), list(scene.outside.done))
        if came_to != forks[done.repaired_from]:
            wrong.append(f"{damage}: {came_to} instead of {forks[done.repaired_from]}")
        if after.faults or not {(fault.table, fault.place) for fault in after.left_behind} <= stood:
            wrong.append(f"{damage}: after the repair {[*map(str, after.faults)]}")
        if state.config != done.config or [x.damage for x in scene.saver.threads() if x.thread_id == "t"] != [None]:
            wrong.append(f"{damage}: the thread is not where the repair says")
        if not scene.saver.verify("t").is_sound:
            wrong.append(f"{damage}: what came after the repair does not verify")
    return wrong, repaired
