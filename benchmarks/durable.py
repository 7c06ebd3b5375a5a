"""Rows of supersteps with one task each on an SQLite file, in each durability mode. Both savers sync fully."""

from __future__ import annotations

from benchmarks.drive import on_sqlite, versus
from benchmarks.graphs import chain, one_more
from benchmarks.measure import Row

STEPS = 100
TARGETS: dict[str, float | None] = {"async": 15, "exit": None, "sync": None}


def rows() -> list[Row]:
    """Return the rows. `exit` and `sync` are for information: there the disk sets the pace."""
    return [
        versus(
            f"chain, SQLite, {mode}",
            lambda e: chain(e, STEPS, one_more),
            {"n": 0},
            STEPS,
            target,
            saver=on_sqlite,
            durability=mode,
        )
        for mode, target in TARGETS.items()
    ]
