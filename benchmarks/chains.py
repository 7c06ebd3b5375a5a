"""Rows of supersteps with one task each, without a saver and on the in-memory saver."""

from __future__ import annotations

from benchmarks.drive import in_memory, versus
from benchmarks.graphs import chain, loop, one_more, one_more_async
from benchmarks.measure import Row

STEPS = 100


def rows() -> list[Row]:
    """Return the rows."""
    start = {"n": 0}
    return [
        versus("chain, no saver", lambda e: chain(e, STEPS, one_more), start, STEPS, 20),
        versus("loop, no saver", lambda e: loop(e, STEPS, one_more), start, STEPS, 20),
        versus(
            "chain, in memory, sync",
            lambda e: chain(e, STEPS, one_more),
            start,
            STEPS,
            15,
            saver=in_memory,
            durability="sync",
        ),
        versus(
            "loop, in memory, sync",
            lambda e: loop(e, STEPS, one_more),
            start,
            STEPS,
            15,
            saver=in_memory,
            durability="sync",
        ),
        versus(
            "chain, ainvoke, async nodes, no saver",
            lambda e: chain(e, STEPS, one_more_async),
            start,
            STEPS,
            20,
            api="ainvoke",
        ),
        versus(
            "loop, ainvoke, async node and router, no saver",
            lambda e: loop(e, STEPS, one_more_async, is_async=True),
            start,
            STEPS,
            20,
            api="ainvoke",
        ),
        versus(
            "loop, ainvoke, async node, sync router",
            lambda e: loop(e, STEPS, one_more_async),
            start,
            STEPS,
            5,
            api="ainvoke",
        ),
        versus(
            "chain, ainvoke, sync nodes, no saver",
            lambda e: chain(e, STEPS, one_more),
            start,
            STEPS,
            5,
            api="ainvoke",
        ),
    ]
