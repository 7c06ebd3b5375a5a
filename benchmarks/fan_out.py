"""Rows of one wide superstep: a thousand sends of one node."""

from __future__ import annotations

from typing import Any

from benchmarks.drive import in_memory, versus
from benchmarks.graphs import fan
from benchmarks.measure import Row

WIDTH = 1_000


def rows() -> list[Row]:
    """Return the rows."""
    shared: dict[str, Any] = {"warm_up": {"width": 10, "out": []}, "unit": "task", "rounds": 3}
    start = {"width": WIDTH, "out": []}
    return [
        versus(
            "1,000 sends, async nodes, no saver",
            lambda e: fan(e, is_async=True),
            start,
            WIDTH,
            25,
            api="ainvoke",
            **shared,
        ),
        versus(
            "1,000 sends, async nodes, in memory, sync",
            lambda e: fan(e, is_async=True),
            start,
            WIDTH,
            15,
            saver=in_memory,
            api="ainvoke",
            durability="sync",
            **shared,
        ),
        versus(
            "1,000 sends, sync nodes, no saver",
            lambda e: fan(e, is_async=False),
            start,
            WIDTH,
            10,
            **shared,
        ),
    ]
