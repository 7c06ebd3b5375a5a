"""`stepwell show`: one checkpoint of a thread, with the graph's help or from its rows alone."""

from __future__ import annotations

import click

from stepwell.cli.checkpoint_view import CheckpointView, view_of
from stepwell.cli.database import durable, reading, store_of, thread_row
from stepwell.cli.rendering import Renderer
from stepwell.cli.report import report_checkpoint
from stepwell.cli.settings import Settings, global_options
from stepwell.cli.stored import read_view
from stepwell.cli.target import load_graph
from stepwell.errors import UnknownCheckpointError

ANY_GRAPH = "MODULE:GRAPH"


@click.command("show")
@click.argument("thread_id", metavar="T")
@click.argument("checkpoint_id", metavar="[CHECKPOINT]", required=False)
@click.option("--graph", "target", metavar="MODULE:GRAPH", help="The graph, to apply its reducers and check its types.")
@global_options
@click.pass_obj
def show(settings: Settings, thread_id: str, checkpoint_id: str | None, target: str | None) -> None:
    """Show a checkpoint of a thread, or its newest one: values, what is next, tasks, questions.

    Without --graph the values are those committed, and a value of a class is shown by its name and parts.
    """
    if target is None:
        with reading(settings) as reader:
            view = read_view(reader, thread_row(reader, thread_id), checkpoint_id)
    else:
        view = _view_by_graph(settings, thread_id, checkpoint_id, target)
    report_checkpoint(view, settings, target or ANY_GRAPH)


def _view_by_graph(settings: Settings, thread_id: str, checkpoint_id: str | None, target: str) -> CheckpointView:
    with durable(load_graph(target), settings, create=False) as graph:
        with store_of(graph).reading() as reader:
            status = thread_row(reader, thread_id).status
        address = {"thread_id": thread_id} | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})
        snapshot = graph.get_state({"configurable": address})
        if checkpoint_id and snapshot.metadata is None:
            raise UnknownCheckpointError(thread_id=thread_id, checkpoint_id=checkpoint_id)
        return view_of(snapshot, status, thread_id, Renderer(graph.codec))
