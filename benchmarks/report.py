"""How measured rows are shown: a table, or JSON for a program. The rule: figures only, no verdict but the target's."""

from __future__ import annotations

import json
from collections.abc import Iterable

from benchmarks.measure import Measured, answered, answered_bytes, peak_bytes

_LAYOUT = "{:<46} {:>38} {:>38} {:>7} {:>7} {}"
HEADER = _LAYOUT.format("", "over", "under", "ratio", "target", "").rstrip()


def line(measured: Measured) -> str:
    """Lay out one row."""
    row = measured.row
    target, mark = ("", "") if row.target is None else (str(row.target), _mark(measured))
    cells = (
        f"{row.over.label} {_amount(measured, measured.over)}/{row.unit}",
        f"{row.under.label} {_amount(measured, measured.under)}/{row.unit}",
    )
    return _LAYOUT.format(row.name, *cells, f"{measured.ratio:.2f}", target, mark).rstrip()


def as_json(rows: Iterable[Measured]) -> str:
    """Return the rows for a program. Costs are seconds or bytes a unit."""
    return json.dumps(
        [
            {
                "name": each.row.name,
                "unit": each.row.unit,
                "measure": each.row.meter.__name__,
                each.row.over.label: each.over,
                each.row.under.label: each.under,
                "ratio": each.ratio,
                "target": None if each.row.target is None else str(each.row.target),
                "met": None if each.row.target is None else each.row.target.is_met(each.ratio),
            }
            for each in rows
        ],
        indent=2,
    )


def _mark(measured: Measured) -> str:
    assert measured.row.target is not None
    return "" if measured.row.target.is_met(measured.ratio) else "missed"


def _amount(measured: Measured, cost: float) -> str:
    if measured.row.meter is answered:
        return f"{cost:,.0f}"
    return f"{cost:,.0f} B" if measured.row.meter in (answered_bytes, peak_bytes) else f"{cost * 1e6:,.1f} µs"
