"""Rows that ask whether cost grows with the work alone: ten thousand sends against a thousand, per task."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.drive import Choose, in_memory, ready, without_saver
from benchmarks.engines import Engine, langgraph, stepwell
from benchmarks.graphs import fan
from benchmarks.measure import Row, Side, Target, peak_bytes

FEW, MANY = 1_000, 10_000
SAVERS: dict[str, Choose] = {"no saver": without_saver, "in memory": in_memory}


def rows() -> list[Row]:
    """Return the rows. LangGraph's own growth is for information."""
    linear = Target("at most", 1.3)
    made = []
    for label, saver in SAVERS.items():
        over, under = _side(stepwell, "Stepwell", MANY, saver), _side(stepwell, "Stepwell", FEW, saver)
        made.append(Row(f"10,000 sends vs 1,000, {label}, time", over, under, "task", linear, rounds=3))
        made.append(Row(f"10,000 sends vs 1,000, {label}, memory", over, under, "task", linear, peak_bytes, rounds=1))
    over, under = (_side(langgraph, "LangGraph", width, without_saver) for width in (MANY, FEW))
    made.append(Row("10,000 sends vs 1,000, LangGraph, time", over, under, "task", rounds=1))
    return made


def _side(engine: Callable[[], Engine], label: str, width: int, saver: Choose) -> Side:
    start, warm_up = {"width": width, "out": []}, {"width": 10, "out": []}
    build = partial(fan, is_async=True)
    return Side(
        f"{label}, {width:,} sends",
        width,
        lambda: ready(engine(), build, saver, "ainvoke", start, warm_up, {}),
    )
