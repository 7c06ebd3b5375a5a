"""Measuring two sides of a ratio in turn. Not here: what is measured (the families) and how it is shown.

The rule: whatever a round needs is made anew before its clock starts and torn down after it has stopped.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal

Run = Callable[[], object]
Meter = Callable[[Run], float]


@dataclass(frozen=True)
class Side:
    """One side of a ratio. Entering `open()` makes a round ready and gives what is to be measured: `count` units."""

    label: str
    count: int
    open: Callable[[], AbstractContextManager[Run]]


@dataclass(frozen=True)
class Target:
    """What the ratio should be."""

    kind: Literal["at least", "at most"]
    ratio: float

    def is_met(self, ratio: float) -> bool:
        """Tell whether `ratio` is as it should be."""
        return ratio >= self.ratio if self.kind == "at least" else ratio <= self.ratio

    def __str__(self) -> str:
        return f"{'≥' if self.kind == 'at least' else '≤'} {self.ratio:g}"


def seconds(run: Run) -> float:
    """Measure the time that `run` takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def cpu_seconds(run: Run) -> float:
    """Measure the processor time that all threads of this process take in `run`; waiting for the disk costs none."""
    start = time.process_time()
    run()
    return time.process_time() - start


def peak_bytes(run: Run) -> float:
    """Measure the most memory that `run` holds at one moment, as Python allocates it."""
    tracemalloc.start()
    try:
        run()
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def answered(run: Run) -> float:
    """Measure what `run` says: a count."""
    count = run()
    assert isinstance(count, int)
    return float(count)


def answered_bytes(run: Run) -> float:
    """Measure what `run` says: a size in bytes."""
    return answered(run)


@dataclass(frozen=True)
class Row:
    """The ratio `over / under` of what one unit costs on each side."""

    name: str
    over: Side
    under: Side
    unit: str
    target: Target | None = None
    meter: Meter = field(default=seconds)
    rounds: int = 5
    repeats: int = 1
    """How often a round may measure, where each time costs the same: the first finds the caches cold."""


@dataclass(frozen=True)
class Measured:
    """A row with the least cost of one unit on each side, in seconds or bytes."""

    row: Row
    over: float
    under: float

    @property
    def ratio(self) -> float:
        return self.over / self.under


def measure(row: Row) -> Measured:
    """Run both sides in turn and keep the best round of each."""
    costs: dict[str, list[float]] = {"over": [], "under": []}
    for name, side in _turns(row):
        with side.open() as run:
            gc.collect()
            costs[name] += [row.meter(run) / side.count for _ in range(row.repeats)]
    return Measured(row, min(costs["over"]), min(costs["under"]))


def _turns(row: Row) -> Iterator[tuple[str, Side]]:
    for _ in range(row.rounds):
        yield "over", row.over
        yield "under", row.under
