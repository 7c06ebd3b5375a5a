"""The arguments that several commands share: the graph, the thread, a checkpoint."""

from __future__ import annotations

from collections.abc import Callable

import click

from stepwell.cli.completing import checkpoint_ids, thread_ids
from stepwell.cli.settings import Command

target_argument = click.argument("target", metavar="MODULE:GRAPH")
thread_argument = click.argument("thread_id", metavar="T", shell_complete=thread_ids)
checkpoint_option = click.option(
    "--checkpoint",
    "checkpoint_id",
    metavar="C",
    shell_complete=checkpoint_ids,
    help="A checkpoint of the thread [its newest].",
)

events_option = click.option("--events", is_flag=True, help="Keep a log of the run, for `stepwell events`.")


def thread_option(what: str) -> Callable[[Command], Command]:
    """Return the option that says which thread."""
    return click.option("--thread", "thread_id", metavar="T", required=True, shell_complete=thread_ids, help=what)
