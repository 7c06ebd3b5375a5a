"""`stepwell resume`: answer a thread's questions and go on with it, or go on after a crash or a failure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from stepwell.cli.arguments import checkpoint_option, events_option, target_argument, thread_option
from stepwell.cli.asking import ask, can_ask
from stepwell.cli.checkpoint_view import CheckpointView
from stepwell.cli.database import durable, store_of, thread_row
from stepwell.cli.driving import config_of, drive, read_head
from stepwell.cli.given import parse_answers
from stepwell.cli.report import report_run
from stepwell.cli.settings import Settings, global_options
from stepwell.cli.target import load_graph
from stepwell.graph.types import Command

if TYPE_CHECKING:
    from stepwell.engine import CompiledGraph

GoOn = Callable[[Command[Any] | None], CheckpointView]


@click.command("resume")
@target_argument
@thread_option("The thread to go on with.")
@checkpoint_option
@click.option("--answer", "texts", metavar="[ID=]JSON", multiple=True, help="Answer a question; may be repeated.")
@events_option
@global_options
@click.pass_obj
def resume(
    settings: Settings, target: str, thread_id: str, checkpoint_id: str | None, texts: tuple[str, ...], events: bool
) -> None:
    """Go on with a thread: answer its open questions, or run what a crash or a failure left.

    Without --answer the questions are asked on a terminal. Off a terminal they stay open. With --checkpoint it goes on
    from there: from an older one in a new lineage, where nothing is asked.
    """
    given = Command(resume=parse_answers(texts)) if texts else None
    again = settings.resume_command(target, thread_id)
    with durable(load_graph(target), settings, create=False, events=events) as graph:
        with store_of(graph).reading() as reader:
            thread_row(reader, thread_id, checkpoint_id)
        config = config_of(thread_id, checkpoint_id)

        def go_on(answers: Command[Any] | None) -> CheckpointView:
            begin = partial(graph.stream, answers, config)
            return drive(graph, thread_id, begin, quiet=settings.json, again=again)

        view = (
            go_on(given) if given or checkpoint_id or not can_ask(settings) else _in_dialogue(graph, thread_id, go_on)
        )
    report_run(view, settings, target)


def _in_dialogue(graph: CompiledGraph, thread_id: str, go_on: GoOn) -> CheckpointView:
    """Ask, go on with what was answered, and ask again, until nothing is open or nothing more is answered."""
    view = read_head(graph, thread_id)
    answers = ask(view.questions)
    while True:
        view = go_on(Command(resume=answers) if answers else None)
        if not view.questions or not (answers := ask(view.questions)):
            return view
