"""`python -m benchmarks.publish RESULTS.json`: turn what `python -m benchmarks --json` printed into docs/benchmarks.md.

The tables stand between the page's markers; the plots beside it, one a group of ratios. What is not measured is not
shown, and a target that was missed is shown as missed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "docs" / "benchmarks" / "results.json"
PLOTS = ROOT / "docs" / "benchmarks"
MARKS = ("<!-- measured -->", "<!-- /measured -->")
TITLES = {
    "chains": "Supersteps of one task",
    "durable": "On an SQLite file, in each durability mode",
    "fan_out": "A thousand parallel sends",
    "growth": "Ten thousand against a thousand",
    "resume": "A long thread against a short one",
    "history": "Reading back",
    "steps": "Durable steps",
    "pausing": "Going on",
    "many": "Many threads at once",
    "storage": "What is stored",
    "memory": "What a process holds",
    "postgres": "On PostgreSQL",
    "peers": "Other durable engines",
    "floor": "Against the database alone",
}


def main(arguments: Sequence[str]) -> int:
    """Write the page, the results and the plots."""
    if arguments:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(Path(arguments[0]).read_text("utf-8"), "utf-8")
    results = json.loads(RESULTS.read_text("utf-8"))
    PAGE.write_text(page(PAGE.read_text("utf-8"), results), "utf-8")
    for family in TITLES:
        rows = [row for row in results["rows"] if row["family"] == family]
        if len(rows) > 1:
            plot(TITLES[family], rows, PLOTS / f"{family}.png")
    return 0


def page(text: str, results: dict[str, Any]) -> str:
    """Return the page with the tables of these results between its marks."""
    before, _, after = re.split(f"({re.escape(MARKS[0])}.*{re.escape(MARKS[1])})", text, maxsplit=1, flags=re.S)
    return f"{before}{MARKS[0]}\n\n{tables(results)}\n{MARKS[1]}{after}"


def tables(results: dict[str, Any]) -> str:
    """Return one table a family, with the plot of it."""
    parts = [f"Measured on {results['date']}: {results['machine']}.\n"]
    for family, title in TITLES.items():
        rows = [row for row in results["rows"] if row["family"] == family]
        if not rows:
            continue
        parts.append(f"### {title}\n")
        if len(rows) > 1:
            parts.append(f"![{title}: ratios](benchmarks/{family}.png)\n")
        parts.append("| | over | under | ratio | target |\n|---|---|---|---:|---|")
        parts.append("\n".join(_line(row) for row in rows) + "\n")
    return "\n".join(parts)


def plotted(text: str) -> list[str]:
    """Return the families that a page shows a plot of."""
    return re.findall(r"\]\(benchmarks/(\w+)\.png\)", text)


def _line(row: dict[str, Any]) -> str:
    target = "" if row["target"] is None else row["target"] + ("" if row["met"] else ", missed")
    return f"| {row['name']} | {row['over']} | {row['under']} | {row['ratio']:.2f} | {target} |"


def plot(title: str, rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the ratios as bars on a logarithmic scale, each with its target as a tick."""
    import_module("matplotlib").use("Agg")
    pyplot = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(9, 0.5 * len(rows) + 1.2), layout="constrained")
    names = [row["name"] for row in rows][::-1]
    ratios = [row["ratio"] for row in rows][::-1]
    bars = axes.barh(names, ratios, color=["#c77" if row["met"] is False else "#4a7" for row in rows][::-1])
    axes.bar_label(bars, [f"{ratio:.3g}" for ratio in ratios], padding=3)
    for place, row in enumerate(rows[::-1]):
        if row["target"] is not None:
            axes.plot([float(row["target"].split()[1])] * 2, [place - 0.4, place + 0.4], color="#333", linewidth=2)
    axes.set(xscale="log", title=title, xlabel="ratio (the mark is the target)")
    axes.margins(x=0.15)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
