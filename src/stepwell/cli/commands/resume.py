"""`stepwell resume`: answer a thread's questions and go on with it, or go on after a crash or a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from stepwell.cli.asking import ask, can_ask
from stepwell.cli.checkpoint_view import CheckpointView
from stepwell.cli.database import durable, store_of, thread_row
from stepwell.cli.driving import drive, read_head
from stepwell.cli.given import parse_answers
from stepwell.cli.report import report_run
from stepwell.cli.settings import Settings, global_options
from stepwell.cli.target import load_graph
from stepwell.graph.types import Command

if TYPE_CHECKING:
    from stepwell.engine import CompiledGraph

GoOn = Callable[[Command[Any] | None], CheckpointView]


@click.command("resume")
@click.argument("target", metavar="MODULE:GRAPH")
@click.option("--thread", "thread_id", metavar="T", required=True, help="The thread to go on with.")
@click.option("--answer", "texts", metavar="[ID=]JSON", multiple=True, help="Answer a question; may be repeated.")
@global_options
@click.pass_obj
def resume(settings: Settings, target: str, thread_id: str, texts: tuple[str, ...]) -> None:
    """Go on with a thread: answer its open questions, or run what a crash or a failure left.

    Without --answer the questions are asked on a terminal. Off a terminal they stay open.
    """
    given = Command(resume=parse_answers(texts)) if texts else None
    again = settings.resume_command(target, thread_id)
    with durable(load_graph(target), settings, create=False) as graph:
        with store_of(graph).reading() as reader:
            thread_row(reader, thread_id)

        def go_on(answers: Command[Any] | None) -> CheckpointView:
            return drive(graph, thread_id, answers, quiet=settings.json, again=again)

        view = go_on(given) if given or not can_ask(settings) else _in_dialogue(graph, thread_id, go_on)
    report_run(view, settings, target)


def _in_dialogue(graph: CompiledGraph, thread_id: str, go_on: GoOn) -> CheckpointView:
    """Ask, go on with what was answered, and ask again, until nothing is open or nothing more is answered."""
    view = read_head(graph, thread_id)
    answers = ask(view.questions)
    while True:
        view = go_on(Command(resume=answers) if answers else None)
        if not view.questions or not (answers := ask(view.questions)):
            return view
