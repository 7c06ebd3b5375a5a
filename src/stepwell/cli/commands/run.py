"""`stepwell run`: begin a thread with an input, or go on with it."""

from __future__ import annotations

from functools import partial

import click

from stepwell.cli.arguments import events_option, target_argument, thread_option
from stepwell.cli.settings import Settings, global_options


@click.command("run")
@target_argument
@thread_option("The thread to run.")
@click.option("--input", "text", metavar="JSON|@FILE", help="The input. Without one the thread goes on.")
@events_option
@global_options
@click.pass_obj
def run(settings: Settings, target: str, thread_id: str, text: str | None, events: bool) -> None:
    """Run a graph to its end or to a question, and print its values as JSON."""
    from stepwell.cli.database import durable
    from stepwell.cli.driving import config_of, drive
    from stepwell.cli.given import parse_input
    from stepwell.cli.report import report_run
    from stepwell.cli.target import load_graph

    given = None if text is None else parse_input(text)
    again = settings.resume_command(target, thread_id)
    with durable(load_graph(target), settings, events=events) as graph:
        begin = partial(graph.stream, given, config_of(thread_id))
        view = drive(graph, thread_id, begin, quiet=settings.json, again=again)
    report_run(view, settings, target)
