"""`stepwell check`: which threads a graph, as it is now, could not go on with. To be run before a deployment."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from stepwell.cli.database import durable, store_of
from stepwell.cli.exit_status import FAILED, OK
from stepwell.cli.screen import one_line, say, write, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.cli.target import load_graph
from stepwell.store import DAMAGED, ThreadsQuery
from stepwell.superstep import lifecycle

if TYPE_CHECKING:
    from stepwell.engine import CompiledGraph
    from stepwell.runtime.checking import Verdict


@click.command("check")
@click.argument("target", metavar="MODULE:GRAPH")
@click.option("--all", "everything", is_flag=True, help="Check finished threads too: could they take a new input?")
@global_options
@click.pass_obj
def check(settings: Settings, target: str, everything: bool) -> int:
    """List every unfinished thread that the graph, as it is now, could not go on with, and why.

    Nothing runs and nothing is written. The exit status is 1 where there is such a thread.
    """
    with durable(load_graph(target), settings, create=False) as graph:
        verdicts, others = _judged(graph, everything)
    stuck = [verdict for verdict in verdicts if verdict.missing]
    if settings.json:
        facts = {"graph": graph.plan.graph_id, "version": graph.plan.version, "checked": len(verdicts)}
        write_json({**facts, "stuck": list(map(_facts, stuck)), "other_graphs": dict(others)})
    else:
        for verdict in stuck:
            _write(verdict)
        say(_summary(graph, len(verdicts), len(stuck), others))
    return FAILED if stuck else OK


def _judged(graph: CompiledGraph, everything: bool) -> tuple[list[Verdict], Counter[str]]:
    """Return the verdict on each thread of the graph, and how many threads other graphs have."""
    from stepwell.runtime.checking import judge

    with store_of(graph).reading() as reader:
        threads = reader.threads(ThreadsQuery())
        own = [thread for thread in threads if thread.graph_id == graph.plan.graph_id or thread.status == DAMAGED]
        live = [thread for thread in own if everything or thread.status != lifecycle.FINISHED]
        verdicts = [judge(reader, graph.codec, graph.plan, thread) for thread in live]
    return verdicts, Counter(thread.graph_id for thread in threads if thread not in own)


def _write(verdict: Verdict) -> None:
    row = verdict.row
    version = f", written by version {row.version!r}" if row is not None and row.version else ""
    write(f"{one_line(verdict.thread.thread_id)} ({verdict.thread.status}{version}) lacks")
    for text in verdict.missing:
        write(f"  {one_line(text)}")


def _facts(verdict: Verdict) -> dict[str, Any]:
    row = verdict.row
    return {
        "thread": verdict.thread.thread_id,
        "status": verdict.thread.status,
        "checkpoint": row.checkpoint_id if row is not None else None,
        "version": row.version if row is not None else None,
        "missing": list(verdict.missing),
    }


def _summary(graph: CompiledGraph, checked: int, stuck: int, others: Counter[str]) -> str:
    name = graph.plan.graph_id
    text = f"graph {name}: {checked} threads checked, {stuck} could not go on"
    if others:
        told = ", ".join(f"{count} of {graph_id}" for graph_id, count in sorted(others.items()))
        text += f"; not looked at: {told}"
    return one_line(text)
