"""`python -m benchmarks [name ...] [--json]`: measure the named families, or rows whose name holds a word; else all."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

from benchmarks import (
    chains,
    durable,
    fan_out,
    floor,
    growth,
    history,
    many,
    memory,
    pausing,
    peers,
    postgres,
    report,
    resume,
    steps,
    storage,
)
from benchmarks.measure import Measured, Row, cpu_seconds, measure, seconds

FAMILIES: dict[str, Callable[[], list[Row]]] = {
    "chains": chains.rows,
    "durable": durable.rows,
    "fan_out": fan_out.rows,
    "growth": growth.rows,
    "resume": resume.rows,
    "history": history.rows,
    "steps": steps.rows,
    "pausing": pausing.rows,
    "many": many.rows,
    "storage": storage.rows,
    "memory": memory.rows,
    "postgres": postgres.rows,
    "peers": peers.rows,
    "floor": floor.rows,
}


def main() -> int:
    """Measure and print; the exit status says nothing about speed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(FAMILIES)}, or a part of a row's name")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=int, help="rounds of each side; by default as the row says")
    parser.add_argument("--cpu", action="store_true", help="measure processor time: steadier on a busy machine")
    options = parser.parse_args()
    chosen = [(family, _adjusted(row, options)) for family, row in _rows() if _is_chosen(options.names, family, row)]
    if not chosen:
        parser.error(f"no family or row is named {' or '.join(options.names)}")
    measured = _measure_each(chosen, quiet=options.json)
    if options.json:
        print(report.as_json(measured))
    return 0


def _rows() -> Iterator[tuple[str, Row]]:
    for family, rows in FAMILIES.items():
        for row in rows():
            yield family, row


def _is_chosen(names: list[str], family: str, row: Row) -> bool:
    return not names or any(name == family or (name not in FAMILIES and name in row.name) for name in names)


def _adjusted(row: Row, options: argparse.Namespace) -> Row:
    meter = cpu_seconds if options.cpu and row.meter is seconds else row.meter
    return replace(row, meter=meter, rounds=options.rounds or row.rounds)


def _measure_each(rows: list[tuple[str, Row]], quiet: bool) -> list[tuple[str, Measured]]:
    """Measure one after the other; the table, line by line, goes to stderr where JSON goes to stdout."""
    done, shown = [], sys.stderr if quiet else sys.stdout
    print(report.HEADER, file=shown)
    for family, row in rows:
        done.append((family, measure(row)))
        print(report.line(done[-1][1]), file=shown, flush=True)
    return done


if __name__ == "__main__":
    sys.exit(main())
