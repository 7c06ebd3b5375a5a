"""`stepwell fork`: a new branch at a checkpoint, optionally edited. Nothing of it runs yet."""

from __future__ import annotations

import click

from stepwell.cli.arguments import checkpoint_option, target_argument, thread_option
from stepwell.cli.checkpoint_view import node_names
from stepwell.cli.database import durable, store_of, thread_row
from stepwell.cli.driving import config_of
from stepwell.cli.given import parse_given
from stepwell.cli.screen import one_line, say, write, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.cli.stored import newest_id, place_of, planned_nodes
from stepwell.cli.target import load_graph
from stepwell.errors import UsageError


@click.command("fork")
@target_argument
@thread_option("The thread to fork.")
@checkpoint_option
@click.option("--values", "text", metavar="JSON|@FILE", help="What to write into the new branch's state.")
@click.option("--as-node", metavar="NODE", help="The node that wrote it, and where its edges lead from [the last one].")
@click.option("--into", metavar="NEW", help="Begin this thread with the checkpoint, instead of a branch.")
@global_options
@click.pass_obj
def fork(
    settings: Settings,
    target: str,
    thread_id: str,
    checkpoint_id: str | None,
    text: str | None,
    as_node: str | None,
    into: str | None,
) -> None:
    """Begin a new lineage at a checkpoint of a thread. The thread goes on there: `resume` runs it.

    What ran, was asked or was answered on the checkpoint does not come along.
    """
    if into == "":
        raise UsageError("--into is empty: name the thread to begin.")
    values = None if text is None else parse_given(text, "--values")
    with durable(load_graph(target), settings, create=False) as graph:
        with store_of(graph).reading() as reader:
            thread_row(reader, thread_id, checkpoint_id)
            source = checkpoint_id or newest_id(reader, thread_id)
        made = graph.fork(config_of(thread_id, source), values, as_node, into)["configurable"]
        with store_of(graph).reading() as reader:
            row = reader.checkpoint(made["thread_id"], "", made["checkpoint_id"])
    assert row is not None  # it is durable, and nothing but `delete` takes it away
    resume = settings.resume_command(target, row.thread_id)
    if settings.json:
        facts = {"thread": row.thread_id, "lineage": row.lineage, **place_of(row)}
        write_json({**facts, "forked_from": {"thread": thread_id, "checkpoint": source}, "resume": resume})
    else:
        nodes = node_names(planned_nodes(row))
        write(f"thread {one_line(row.thread_id)}: lineage {row.lineage} at {row.checkpoint_id}, next: {nodes}")
        say(f"go on: {resume}")
