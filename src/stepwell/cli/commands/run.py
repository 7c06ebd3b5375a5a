"""`stepwell run`: begin a thread with an input, or go on with it."""

from __future__ import annotations

import click

from stepwell.cli.settings import Settings, global_options


@click.command("run")
@click.argument("target", metavar="MODULE:GRAPH")
@click.option("--thread", "thread_id", metavar="T", required=True, help="The thread to run.")
@click.option("--input", "text", metavar="JSON|@FILE", help="The input. Without one the thread goes on.")
@global_options
@click.pass_obj
def run(settings: Settings, target: str, thread_id: str, text: str | None) -> None:
    """Run a graph to its end or to a question, and print its values as JSON."""
    from stepwell.cli.database import durable
    from stepwell.cli.driving import drive
    from stepwell.cli.given import parse_input
    from stepwell.cli.report import report_run
    from stepwell.cli.target import load_graph

    given = None if text is None else parse_input(text)
    again = settings.resume_command(target, thread_id)
    with durable(load_graph(target), settings) as graph:
        view = drive(graph, thread_id, given, quiet=settings.json, again=again)
    report_run(view, settings, target)
