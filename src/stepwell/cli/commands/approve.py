"""`stepwell approve`: let an effect happen that waits for a decision."""

from __future__ import annotations

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.deciding import decide, parse_arguments
from stepwell.cli.settings import Settings, global_options
from stepwell.graph.approval import Approve


@click.command("approve")
@thread_argument
@click.argument("which", metavar="[ID|KEY]", required=False)
@click.option("--by", metavar="WHO", required=True, help="Who decides.")
@click.option("--note", metavar="TEXT", help="What they say to it.")
@click.option("--set", "changed", metavar="NAME=JSON", multiple=True, help="Change an argument; may be repeated.")
@global_options
@click.pass_obj
def approve(
    settings: Settings, thread_id: str, which: str | None, by: str, note: str | None, changed: tuple[str, ...]
) -> None:
    """Let an effect happen that waits for a decision, named by the id of its question or its key; `show` lists them.

    The decision is recorded with who and when, and nothing runs; `resume` goes on with the thread.
    """
    decide(settings, thread_id, which, Approve(by, note, parse_arguments(changed)))
