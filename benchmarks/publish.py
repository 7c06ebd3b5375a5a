"""`python -m benchmarks.publish RESULTS.json`: turn what `python -m benchmarks --json` printed into docs/benchmarks.md
and what the README says of it.

What was measured stands between the markers of each; the plots beside the page, one a group of ratios. What is not
measured is not shown, and a target that was missed is shown as missed.
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
README = ROOT / "README.md"
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
BESIDE_LANGGRAPH = {
    "chain, no saver": "a chain of nodes without a saver",
    "chain, ainvoke, async nodes, no saver": "the same under `ainvoke`",
    "chain, in memory, sync": "in memory",
    "chain, SQLite, sync": "on an SQLite file",
    "1,000 sends, async nodes, no saver": "a thousand parallel sends",
    "200 threads x 20 steps at once, SQLite": "200 threads at once on SQLite",
    "200 threads x 20 steps at once, PostgreSQL": "200 threads at once on PostgreSQL",
    "500 messages of 1 kB, time": "500 steps that each append a message",
    "whole history of 500 messages": "their whole history",
    "latest state of 500 messages": "their latest state",
    "a megabyte carried along, time": "a step beside a megabyte that stays as it is",
    "1,000 steps in a row, SQLite": "a recorded step (`@task`)",
    "going on with a thread of 1,000 steps": "going on with a long thread",
    "a question asked and answered": "a question asked and answered",
}
"""Which rows the README shows, and how it calls them."""
SIZES = ("500 messages of 1 kB, Stepwell", "500 messages of 1 kB, LangGraph")


def main(arguments: Sequence[str]) -> int:
    """Write the page, the results and the plots."""
    if arguments:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(Path(arguments[0]).read_text("utf-8"), "utf-8")
    results = json.loads(RESULTS.read_text("utf-8"))
    PAGE.write_text(page(PAGE.read_text("utf-8"), tables(results)), "utf-8")
    README.write_text(page(README.read_text("utf-8"), overview(results)), "utf-8")
    for family in TITLES:
        rows = [row for row in results["rows"] if row["family"] == family]
        if len(rows) > 1:
            plot(TITLES[family], rows, PLOTS / f"{family}.png")
    return 0


def page(text: str, measured: str) -> str:
    """Return the page with what was measured between its marks."""
    before, _, after = re.split(f"({re.escape(MARKS[0])}.*{re.escape(MARKS[1])})", text, maxsplit=1, flags=re.S)
    return f"{before}{MARKS[0]}\n\n{measured}\n{MARKS[1]}{after}"


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


def overview(results: dict[str, Any]) -> str:
    """Return how fast the most common work is beside LangGraph, and how large."""
    rows = {row["name"]: row for row in results["rows"]}
    lines = [f"| {words} | {rows[name]['ratio']:.1f} |" for name, words in BESIDE_LANGGRAPH.items() if name in rows]
    ours, theirs = (rows[name]["ratio"] for name in SIZES)
    sizes = f"The 500 messages take up {ours:.1f} times their own size on SQLite, {theirs:.0f} times with LangGraph."
    return "\n".join(["| | times as fast as LangGraph |", "|---|---:|", *lines, "", sizes, ""])


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
