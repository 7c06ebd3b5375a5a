"""`stepwell show`: a checkpoint of a thread, or what differs between two, with the graph's help or without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.checkpoint_view import CheckpointView, view_of
from stepwell.cli.completing import checkpoint_ids
from stepwell.cli.database import durable, opened, store_of, thread_row
from stepwell.cli.driving import config_of
from stepwell.cli.rendering import Renderer
from stepwell.cli.report import report_checkpoint, report_difference
from stepwell.cli.settings import Settings, global_options
from stepwell.cli.stored import read_view
from stepwell.cli.target import load_graph
from stepwell.savers.threads import status_of

ANY_GRAPH = "MODULE:GRAPH"
View = Callable[[str | None], CheckpointView]
"""Checkpoint id, or None for the newest → the checkpoint."""


@click.command("show")
@thread_argument
@click.argument("checkpoint_id", metavar="[CHECKPOINT]", required=False, shell_complete=checkpoint_ids)
@click.argument("other_id", metavar="[OTHER]", required=False, shell_complete=checkpoint_ids)
@click.option("--graph", "target", metavar="MODULE:GRAPH", help="The graph, to apply its reducers and check its types.")
@global_options
@click.pass_obj
def show(
    settings: Settings, thread_id: str, checkpoint_id: str | None, other_id: str | None, target: str | None
) -> None:
    """Show a checkpoint of a thread, or its newest one: values, what is next, tasks, questions.

    With two checkpoints, show what differs from the first to the second. Without --graph the values are those
    committed, and a value of a class is shown by its name and parts.
    """
    views = _by_rows(settings, thread_id) if target is None else _by_graph(settings, thread_id, target)
    with views as view:
        shown = view(checkpoint_id)
        other = None if other_id is None else view(other_id)
    if other is None:
        report_checkpoint(shown, settings, target or ANY_GRAPH)
    else:
        report_difference(shown, other, settings)


@contextmanager
def _by_rows(settings: Settings, thread_id: str) -> Iterator[View]:
    """Open the thread: both checkpoints come from one snapshot of it."""
    with opened(settings) as saver, saver.store.reading() as reader:
        thread = thread_row(reader, thread_id)
        thread = thread._replace(status=status_of(saver.store, thread))
        yield lambda checkpoint_id: read_view(reader, thread, checkpoint_id)


@contextmanager
def _by_graph(settings: Settings, thread_id: str, target: str) -> Iterator[View]:
    """Open the thread for its graph to read."""
    with durable(load_graph(target), settings, create=False) as graph:

        def view(checkpoint_id: str | None) -> CheckpointView:
            with store_of(graph).reading() as reader:
                status = status_of(store_of(graph), thread_row(reader, thread_id, checkpoint_id))
            snapshot = graph.get_state(config_of(thread_id, checkpoint_id))
            return view_of(snapshot, status, thread_id, Renderer(graph.codec))

        yield view
