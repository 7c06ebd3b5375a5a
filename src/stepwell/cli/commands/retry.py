"""`stepwell retry`: run what failed again, or named tasks anew."""

from __future__ import annotations

from functools import partial

import click

from stepwell.cli.arguments import checkpoint_option, events_option, target_argument, thread_option
from stepwell.cli.database import durable, store_of, thread_row
from stepwell.cli.driving import config_of, drive
from stepwell.cli.report import report_run
from stepwell.cli.settings import Settings, global_options
from stepwell.cli.target import load_graph


@click.command("retry")
@target_argument
@thread_option("The thread to run.")
@checkpoint_option
@click.option(
    "--task", "tasks", metavar="NODE|ID", multiple=True, help="Run this one anew, finished or not; repeatable."
)
@events_option
@global_options
@click.pass_obj
def retry(
    settings: Settings,
    target: str,
    thread_id: str,
    checkpoint_id: str | None,
    tasks: tuple[str, ...],
    events: bool,
) -> None:
    """Run the failed tasks of a thread again, and what follows. What had finished beside them is kept.

    With --task the named tasks of the checkpoint run anew: what they had written is discarded, which is recorded. At an
    older checkpoint they run in a new lineage.
    """
    again = settings.resume_command(target, thread_id)
    with durable(load_graph(target), settings, create=False, events=events) as graph:
        with store_of(graph).reading() as reader:
            thread_row(reader, thread_id, checkpoint_id)
        begin = partial(graph._stream_retry, config_of(thread_id, checkpoint_id), tasks or None)
        view = drive(graph, thread_id, begin, quiet=settings.json, again=again)
    report_run(view, settings, target)
