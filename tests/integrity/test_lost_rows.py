"""INV-10 where rows are gone: of threads that have lived in many ways, each row is missed."""

import operator
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, TypedDict

import pytest

from stepwell import START, Command, CorruptRecordError, Encryption, StateGraph, UnknownThreadError, points
from stepwell.testing import SimulatedCrash
from stepwell.testing.crash import crash_at
from tests.integrity.damaging import CORRUPT, TABLES, Damage, Scene, ask_all, views
from tests.integrity.grounds import InMemory
from tests.integrity.test_every_row import LISTS, leaves_no_trace
from tests.runtime.graphs import letters, thread

Life = Callable[[Scene], object]
HEARD = tuple(table for table in TABLES if table != "runs")
"""Not the runs: of one whose rows were pruned nothing else tells."""


class Kept(TypedDict, total=False):
    """A state with a long text, beside a log."""

    log: Annotated[list[str], operator.add]
    text: str


def finished(scene: Scene, name: str = "t") -> None:
    """Have a thread end, with two large values on the way, one of them in several rows."""
    graph = StateGraph(Kept)
    graph.add_node("a", lambda state: {"text": "a" * 9000, "log": ["a"]})
    graph.add_node("b", lambda state: {"text": "b" * 9000, "log": ["b" * 9000]})
    graph.add_node("c", lambda state: {"log": ["c"]})
    for edge in ((START, "a"), ("a", "b"), ("b", "c")):
        graph.add_edge(*edge)
    graph.compile(checkpointer=scene.saver, name="g").invoke({}, thread(name))


def asking(scene: Scene, name: str = "t") -> None:
    """Have a thread wait for a signal, get it, and ask."""
    scene.graph.invoke({}, thread(name))
    scene.graph.signal(thread(name), "go", 1)
    scene.graph.invoke(None, thread(name))


def failed(scene: Scene, name: str = "t") -> None:
    asking(scene, name)
    with suppress(ValueError):
        scene.graph.invoke(Command(resume="yes"), thread(name))


def stopped(scene: Scene, name: str = "t") -> None:
    """Have a thread stop where breakpoints are kept, and die when it was to go on to others."""
    graph = letters("abcd").compile(checkpointer=scene.saver, name="g")
    graph.invoke({}, thread(name), interrupt_before=["b"], keep_breakpoints=True)
    with suppress(SimulatedCrash), crash_at(points.DURABLE):
        graph.invoke(None, thread(name), interrupt_before=["c"], keep_breakpoints=True)


def copied(live: Callable[[Scene, str], object], times: int = 1) -> Life:
    """Return a life that ends in a copy, or the copy of a copy."""

    def living(scene: Scene) -> None:
        names = [f"before {number}" for number in range(times)]
        live(scene, names[0])
        for source, target in zip(names, [*names[1:], "t"], strict=True):
            scene.saver.copy_thread(source, target)

    return living


def pruned(live: Callable[[Scene], object]) -> Life:
    def living(scene: Scene) -> None:
        live(scene)
        scene.saver.prune("t", keep_last=1)

    return living


def imported(live: Life) -> Life:
    def living(scene: Scene) -> None:
        live(scene)
        with TemporaryDirectory() as folder:
            scene.saver.export_thread("t", Path(folder) / "thread")
            scene.saver.delete_thread("t")
            scene.saver.import_thread(Path(folder) / "thread")

    return living


def forked_away(scene: Scene, name: str = "t") -> None:
    """Have a thread begin as a fork of another's checkpoint."""
    failed(scene, f"{name}'s origin")
    states = scene.graph.get_state_history(thread(f"{name}'s origin"))
    scene.graph.fork(next(state.config for state in states if state.next == ("ask",)), thread_id=name)


def gone_on(live: Life) -> Life:
    def living(scene: Scene) -> None:
        live(scene)
        scene.graph.invoke(None, thread())

    return living


def edited(scene: Scene, name: str = "t") -> None:
    asking(scene, name)
    scene.graph.update_state(thread(name), {"log": ["edited"]})


LIVES: dict[str, Life] = {
    "finished": finished,
    "asking": asking,
    "failed": failed,
    "stopped": stopped,
    "edited": edited,
    "branched": Scene.branched,
    "forked away": forked_away,
    "forked away and gone on": gone_on(forked_away),
    "finished, copied": copied(finished),
    "asking, copied": copied(asking),
    "stopped, copied": copied(stopped),
    "branched, copied": copied(Scene.branched),
    "forked away, copied": copied(forked_away),
    "finished, copied twice": copied(finished, 2),
    "asking, copied twice": copied(asking, 2),
    "finished, pruned": pruned(finished),
    "asking, pruned": pruned(asking),
    "branched, pruned": pruned(Scene.branched),
    "asking, copied, pruned": pruned(copied(asking)),
    "branched, copied twice, pruned": pruned(copied(Scene.branched, 2)),
    "asking, pruned, copied, gone on": gone_on(pruned(copied(asking))),
    "asking, copied, imported": imported(copied(asking)),
    "branched, pruned, imported": imported(pruned(Scene.branched)),
}


ENCRYPTED = ("finished", "asking", "branched, copied", "asking, copied, pruned")


@pytest.mark.parametrize(
    ("life", "is_encrypted"), [*((life, False) for life in LIVES), *((life, True) for life in ENCRYPTED)]
)
def test_a_row_that_is_gone_is_missed(life: str, is_encrypted: bool) -> None:
    key = Encryption({"k": Encryption.new_key()}) if is_encrypted else None
    assert missed_or_wrong(Scene(LIVES[life], InMemory(key))) == []


def missed_or_wrong(scene: Scene, every: int = 1) -> list[str]:
    """Delete each row of the thread, or every so many, one at a time. Return what is wrong then: it is not missed,
    answers wrongly, or is taken elsewhere."""
    assert scene.saver.verify().is_sound
    asked = views(scene, "t")
    before = ask_all(asked)
    wrong: list[str] = []
    losses = [Damage(table, row, "delete", "", None) for table in HEARD for row in scene.rows[table]]
    for damage in losses[::every]:
        scene.restore()
        assert scene.damage(damage)
        told = f"{damage} {said(damage)}"
        is_sound = scene.saver.verify().is_sound
        if is_sound and not leaves_no_trace(scene, damage):
            wrong.append(f"{told}: verify finds nothing")
        if not is_sound and copies(scene):
            wrong.append(f"{told}: it is copied")
        if not is_sound and exports(scene):
            wrong.append(f"{told}: it is exported")
        gone = damage.row["run_id"] if damage.table == "runs" else None
        answers = ask_all({name: view for name, view in asked.items() if gone is None or gone not in name})
        wrong += [
            f"{told}: {name} answers {answer}"
            for name, answer in answers.items()
            if answer not in (before[name], CORRUPT) and name not in LISTS
        ]
    return wrong


def copies(scene: Scene) -> bool:
    """Tell whether the thread can be copied as it stands."""
    try:
        scene.saver.copy_thread("t", "copy")
    except (CorruptRecordError, UnknownThreadError):
        return False
    return True


def exports(scene: Scene) -> bool:
    """Tell whether the thread can be exported as it stands."""
    with TemporaryDirectory() as folder, suppress(CorruptRecordError, UnknownThreadError):
        scene.saver.export_thread("t", Path(folder) / "thread")
        return True
    return False


def said(damage: Damage) -> dict[str, Any]:
    columns = ("seq", "base_seq", "ordinal", "kind", "lineage", "held", "name", "status")
    return {name: damage.row[name] for name in columns if name in damage.row}
