"""Nodes that wait, and what is read of a thread that does."""

from datetime import UTC, datetime
from typing import Any

from stepwell import CompiledGraph, Waiting, sleep, wait_for
from stepwell.testing import FakeClock
from tests.runtime.graphs import Node

START_OF_TIME = 1_700_000_000_000_000


def at(seconds: float) -> datetime:
    """Return the time so many seconds after a `FakeClock` begins."""
    return datetime.fromtimestamp(START_OF_TIME / 1e6 + seconds, UTC)


def since(clock: FakeClock) -> float:
    """Return how many seconds have passed."""
    return (clock.now() - START_OF_TIME) / 1e6


def nap(name: str, seconds: float) -> Node:
    """Return a node that sleeps, then logs its name."""

    def napping(state: Any) -> dict[str, list[str]]:
        sleep(seconds)
        return {"log": [name]}

    return napping


def expect(name: str, *keys: str, timeout: float | None = None) -> Node:
    """Return a node that waits for a signal of each key in turn, and logs `name=value` for each."""

    def expecting(state: Any) -> dict[str, list[str]]:
        return {"log": [f"{name}={wait_for(key, timeout=timeout)!r}" for key in keys]}

    return expecting


def waiting(result: Any) -> list[Waiting]:
    """Return what a result says is waited for."""
    found: list[Waiting] = result.get("__waiting__", [])
    return found


def status(graph: CompiledGraph, thread_id: str = "t") -> str:
    """Return the status of the thread as stored."""
    with graph.checkpointer.store.reading() as reader:
        return str(reader.thread(thread_id).status)
