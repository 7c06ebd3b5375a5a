"""Ctrl-C at every line of a run: it ends recorded as cancelled, its thread is free, and its lease is let go."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TypedDict

import pytest

import stepwell
from stepwell import START, InMemorySaver, SqliteSaver, StateGraph
from stepwell.superstep import lifecycle
from tests.runtime.graphs import Log, thread

ENGINE = str(Path(stepwell.__file__).parent)
STRIDE = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "ci" else 61
"""Of the lines that a run comes by, the plain run strikes some."""
Line = tuple[str, int]


class Striking:
    """Presses Ctrl-C the first time that the main thread comes to a line of the engine; without one, notes all."""

    def __init__(self, at: Line | None = None) -> None:
        self.lines: dict[Line, None] = {}
        self._at = at
        self._began = False

    def begin(self) -> None:
        """Look from here on."""
        self._began = True

    def __enter__(self) -> "Striking":
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._traced if frame.f_code.co_filename.startswith(ENGINE) else None

    def _traced(self, frame: FrameType, event: str, arg: Any) -> Any:
        line = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and self._began and line not in self.lines:
            self.lines[line] = None
            if line == self._at:
                signal.raise_signal(signal.SIGINT)
        return self._traced


def invoked(graph: Any, durability: str) -> None:
    graph.invoke({"log": []}, thread(), durability=durability)


def streamed(graph: Any, durability: str) -> None:
    for _ in graph.stream({"log": []}, thread(), durability=durability, stream_mode=["updates", "values"]):
        pass


def made(saver: SqliteSaver, striking: Striking, wide: bool) -> Any:
    """Return a graph of a node, or of siblings, and two nodes after them; the first to run has the lines looked at."""

    def a(state: Log) -> Log:
        striking.begin()
        return {"log": ["a"]}

    async def b(state: Log) -> Log:
        return {"log": ["b"]}

    def c(state: Log) -> Log:
        return {"log": ["c"]}

    builder = StateGraph(Log).add_node("a", a).add_node("b", b).add_node("c", c).add_edge(START, "a")
    if wide:
        builder.add_edge(START, "b").add_edge(["a", "b"], "c")
    else:
        builder.add_edge("a", "b").add_edge("b", "c")
    return builder.compile(checkpointer=saver, name="g")


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("drive", [invoked, streamed])
def test_at_whichever_line_ctrl_c_comes_the_run_is_recorded_and_its_thread_is_free(
    drive: Callable[[Any, str], None], durability: str, wide: bool
) -> None:
    with InMemorySaver() as saver, Striking() as every:
        drive(made(saver, every, wide), durability)
    for line in list(every.lines)[::STRIDE]:
        with InMemorySaver() as saver:
            struck = strike(saver, drive, durability, wide, line)
            graph = made(saver, Striking(), wide)
            if graph.get_state(thread()).next:
                assert struck, line
                graph.invoke(None, thread())
            assert sorted(graph.get_state(thread()).values["log"]) == ["a", "b", "c"], line
            assert list(saver.store.verify()) == []


def strike(saver: SqliteSaver, drive: Callable[[Any, str], None], durability: str, wide: bool, line: Line) -> bool:
    """Drive a run and press Ctrl-C at a line. Return whether it was told of that."""
    striking = Striking(line)
    graph = made(saver, striking, wide)
    struck = False
    try:
        with striking:
            drive(graph, durability)
    except KeyboardInterrupt:
        struck = True
    [run] = saver.runs("t")
    assert run.status in (lifecycle.CANCELLED, lifecycle.FINISHED), line
    assert struck or line not in striking.lines, line  # none is lost
    assert not graph._leases._held, line
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return struck


@pytest.fixture
def press() -> Iterator[Callable[[], None]]:
    """Press Ctrl-C from another thread, as it is pressed: the main thread waits."""
    pressing: list[threading.Thread] = []

    def press() -> None:
        main = threading.main_thread().ident or 0
        pressing.append(threading.Thread(target=signal.pthread_kill, args=(main, signal.SIGINT)))
        pressing[-1].start()

    yield press
    for each in pressing:
        each.join()


@pytest.mark.parametrize("wide", [False, True])
def test_ctrl_c_reaches_a_call_that_waits_for_async_nodes(press: Callable[[], None], wide: bool) -> None:
    async def waits(state: Log) -> Log:
        press()
        await asyncio.Event().wait()
        return {}

    builder = StateGraph(Log).add_node("waits", waits).add_edge(START, "waits")
    if wide:
        builder.add_node("other", lambda state: {"log": ["other"]}).add_edge(START, "other")
    saver = InMemorySaver()
    with pytest.raises(KeyboardInterrupt):
        builder.compile(checkpointer=saver).invoke({"log": []}, thread())
    assert [run.status for run in saver.runs("t")] == [lifecycle.CANCELLED]


def test_a_second_ctrl_c_strikes_at_once() -> None:
    """Where the engine itself is stuck: here a reducer that never comes back."""
    left: list[int] = []

    def stuck(before: list[str], after: list[str]) -> list[str]:
        while after:
            left.append(len(left))
            signal.raise_signal(signal.SIGINT)
        return before

    class Stuck(TypedDict):
        log: Annotated[list[str], stuck]

    builder = StateGraph(Stuck).add_node("a", lambda state: {"log": ["a"]}).add_edge(START, "a")
    with pytest.raises(KeyboardInterrupt):
        builder.compile().invoke({"log": []})
    assert left == [0, 1]


def test_a_handler_of_the_users_own_stays_theirs() -> None:
    told: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: told.append(number))
    try:

        def node(state: Log) -> Log:
            signal.raise_signal(signal.SIGINT)
            return {"log": ["a"]}

        graph = StateGraph(Log).add_node("node", node).add_edge(START, "node").compile()
        assert graph.invoke({"log": []}) == {"log": ["a"]}
    finally:
        signal.signal(signal.SIGINT, before)
    assert told == [signal.SIGINT]
