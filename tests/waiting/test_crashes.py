"""Processes that die at every line while threads wait and signals come: each is delivered once, in order, and
the end is that of the thread nothing happened to. INV-1, INV-4."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, strategies as st

from stepwell import CompiledGraph, WaitTimeoutError, awakeable, effect, points, sleep, wait_for
from stepwell.engine import wiring
from stepwell.testing import FakeClock, SimulatedCrash, record_points
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import chain, fan, note, thread
from tests.waiting.nodes import expect, waiting

Op = Callable[[CompiledGraph], Any]


def everything(state: Any) -> dict[str, list[str]]:
    """A node that waits in every way, short and long."""
    first = wait_for("a")
    sleep(0.004)
    sleep(3600)
    second = wait_for("a", timeout=86_400)
    try:
        third = wait_for("never", timeout=60)
    except WaitTimeoutError:
        third = "late"
    return {"log": [first, second, third, awakeable().result()]}


def signals(graph: CompiledGraph) -> None:
    for number in ("1", "2"):
        graph.signal(thread(), "a", number, id=number)


def completion(graph: CompiledGraph) -> None:
    for task in graph.get_state(thread()).tasks:
        for wait in task.waiting:
            if wait.kind == "awakeable":
                graph.complete_awakeable(wait.key, "completed")


class Ticking(FakeClock):
    """A clock that moves a little each time it is read, so that what is short passes."""

    def now(self) -> int:
        self.advance(0.0002)
        return super().now()


class Scene:
    """A thread driven to its end by processes that may die; whoever sends a signal sends it again until it is sent."""

    def __init__(self, graph: Any, durability: Any = "sync") -> None:
        self.deaths = Deaths()
        self.deaths.clock = Ticking()
        self.saver = Saver(self.deaths.clock)
        self.graph: CompiledGraph = graph.compile(checkpointer=self.saver)
        self.durability = durability

    def do(self, op: Op) -> Any:
        """Carry out an operation; where its process dies, again in the next one."""
        while True:
            try:
                return op(self.graph)
            except SimulatedCrash:
                self.deaths.revive()

    def drive(self) -> Any:
        def go(graph: CompiledGraph) -> Any:
            state = graph.get_state(thread())
            begun = bool(state.next or state.values)
            return graph.invoke(None if begun else {"log": ["in"]}, thread(), durability=self.durability)

        return self.do(go)

    def play(self) -> Any:
        """Play the whole of it; return what the thread ends with."""
        self.do(signals)
        result = self.drive()
        for _ in range(20):
            if not waiting(result):
                break
            self.deaths.clock.advance(7200)
            self.do(completion)
            result = self.drive()
        assert list(self.saver.store.verify()) == []
        return result


@contextmanager
def on(clock: Any) -> Iterator[None]:
    """Have runs and messages go by this clock."""
    before, wiring._CLOCK = wiring._CLOCK, clock
    try:
        yield
    finally:
        wiring._CLOCK = before
        points.hook = None


def scene_graph() -> Any:
    return chain(("a", note("a")), ("wait", everything), ("b", note("b")))


UNEVENTFUL = {"log": ["in", "a", "1", "2", "late", "completed", "b"]}


def reached(durability: str) -> list[str]:
    scene = Scene(scene_graph(), durability)
    with on(scene.deaths.clock), record_points() as found:
        assert scene.play() == UNEVENTFUL
    return found


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_thread_that_waits_ends_the_same_wherever_its_process_dies(durability: str) -> None:
    found = reached(durability)
    assert {points.WAIT_DURABLE, points.ARRIVED_DURABLE} <= set(found)
    for point in sorted(set(found)):
        for nth in range(1, found.count(point) + 1, 1 if point.startswith("wait.") else 3):
            scene = Scene(scene_graph(), durability)
            with on(scene.deaths.clock):
                scene.deaths.dies_at(point, nth)
                assert scene.play() == UNEVENTFUL, f"died at {point} {nth}"


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_an_effect_before_a_wait_happens_once_wherever_the_process_dies(durability: str) -> None:
    """INV-7: the node is called again after each wait, and the receipt is found."""

    def play(point: str | None = None, nth: int = 0) -> tuple[Any, list[str], list[str]]:
        charged: list[str] = []

        @effect(on_doubt="retry")
        def charge(amount: int, idempotency_key: str) -> str:
            if idempotency_key not in charged:  # as a server does that honours keys
                charged.append(idempotency_key)
            return f"charged {amount}"

        def node(state: Any) -> dict[str, list[str]]:
            paid = charge(7)
            sleep(3600)
            return {"log": [paid, wait_for("a"), wait_for("a")]}

        scene = Scene(chain(("node", node)), durability)
        with on(scene.deaths.clock), record_points() as found:
            if point is not None:
                scene.deaths.dies_at(point, nth)
            result = scene.play()
        return result, charged, found

    expected, charged, found = play()
    assert (expected, len(charged)) == ({"log": ["in", "charged 7", "1", "2"]}, 1)
    for point in sorted({point for point in found if not point.startswith("transaction.")}):
        for nth in range(1, found.count(point) + 1):
            result, charged, _ = play(point, nth)
            assert (result, len(charged)) == (expected, 1), f"died at {point} {nth}"


# -- the order of signals ---------------------------------------------------------------------------------------------

kill = st.none() | st.tuples(st.sampled_from(points.ALL), st.integers(1, 3))
step = st.sampled_from(["send a", "send b", "again", "drive", "wait"])


class Mailbox:
    """What was sent, key by key, as the sender knows it."""

    def __init__(self) -> None:
        self.sent: dict[str, list[str]] = {"a": [], "b": []}

    def send(self, scene: Scene, key: str, number: int | None = None) -> None:
        if number is None:
            number = len(self.sent[key])
            self.sent[key].append(f"{key}{number}")
        if number >= 0:
            value = f"{key}{number}"
            scene.do(lambda graph: graph.signal(thread(), key, value, id=value))


@given(st.lists(st.tuples(step, kill), min_size=1, max_size=12), st.sampled_from(["sync", "async", "exit"]))
def test_signals_are_delivered_once_and_in_order_whatever_dies(
    steps: list[tuple[str, tuple[str, int] | None]], durability: str
) -> None:
    """Two nodes side by side take the signals of two keys, one of them also of both."""
    graph = fan(("p", expect("p", "a", "b", "a")), ("q", expect("q", "a", "b")))
    scene, mailbox = Scene(graph, durability), Mailbox()
    with on(scene.deaths.clock):
        for name, death in steps:
            if death is not None:
                scene.deaths.dies_at(*death)
            if name.startswith("send"):
                mailbox.send(scene, name[-1])
            elif name == "again":
                mailbox.send(scene, "a", len(mailbox.sent["a"]) - 1)
            elif name == "wait":
                scene.deaths.clock.advance(100)
            else:
                scene.drive()
            points.hook, scene.deaths.dead = None, False
        for key in "aab":
            mailbox.send(scene, key)
        result = scene.drive()
        while waiting(result):
            for key in "ab":
                mailbox.send(scene, key)
            result = scene.drive()
        assert list(scene.saver.store.verify()) == []
    log = [entry for entry in result["log"] if "=" in entry]
    taken = {name: [entry.split("=")[1].strip("'") for entry in log if entry.startswith(name)] for name in "pq"}
    assert [value[0] for value in taken["p"]] == ["a", "b", "a"]
    assert [value[0] for value in taken["q"]] == ["a", "b"]
    for key, count in (("a", 3), ("b", 2)):
        delivered = [value for values in taken.values() for value in values if value[0] == key]
        assert sorted(delivered) == mailbox.sent[key][:count]
    first, second = (value for value in taken["p"] if value[0] == "a")
    assert first < second
