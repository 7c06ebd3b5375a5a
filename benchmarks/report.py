"""How measured rows are shown: a table, or JSON for a program. The rule: figures only, no verdict but the target's."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable

from benchmarks.measure import Measured, Side, answered, answered_bytes, peak_bytes

_LAYOUT = "{:<46} {:>38} {:>38} {:>7} {:>7} {}"
HEADER = _LAYOUT.format("", "over", "under", "ratio", "target", "").rstrip()


def line(measured: Measured) -> str:
    """Lay out one row."""
    row = measured.row
    target, mark = ("", "") if row.target is None else (str(row.target), _mark(measured))
    cells = (_side(measured, row.over, measured.over), _side(measured, row.under, measured.under))
    return _LAYOUT.format(row.name, *cells, f"{measured.ratio:.2f}", target, mark).rstrip()


def as_json(rows: Iterable[tuple[str, Measured]]) -> str:
    """Return the measured rows, each with the family it is of, for a program: `publish.py` makes a page of them."""
    cores, system = os.cpu_count(), f"{platform.system()} {platform.machine()}"
    about = f"{cores} cores, {system}, Python {platform.python_version()}"
    shown = [
        {
            "family": family,
            "name": each.row.name,
            "over": _side(each, each.row.over, each.over),
            "under": _side(each, each.row.under, each.under),
            "measure": each.row.meter.__name__,
            "ratio": round(each.ratio, 4),
            "target": None if each.row.target is None else str(each.row.target),
            "met": None if each.row.target is None else each.row.target.is_met(each.ratio),
        }
        for family, each in rows
    ]
    return json.dumps({"date": time.strftime("%Y-%m-%d"), "machine": about, "rows": shown}, indent=2)


def _side(measured: Measured, side: Side, cost: float) -> str:
    return f"{side.label} {_amount(measured, cost)}/{measured.row.unit}"


def _mark(measured: Measured) -> str:
    assert measured.row.target is not None
    return "" if measured.row.target.is_met(measured.ratio) else "missed"


def _amount(measured: Measured, cost: float) -> str:
    if measured.row.meter is answered:
        return f"{cost:,.0f}"
    return f"{cost:,.0f} B" if measured.row.meter in (answered_bytes, peak_bytes) else f"{cost * 1e6:,.1f} µs"
