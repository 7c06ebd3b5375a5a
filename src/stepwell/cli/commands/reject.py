"""`stepwell reject`: do not let an effect happen that waits for a decision."""

from __future__ import annotations

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.deciding import decide
from stepwell.cli.settings import Settings, global_options
from stepwell.graph.approval import Reject


@click.command("reject")
@thread_argument
@click.argument("which", metavar="[ID|KEY]", required=False)
@click.option("--by", metavar="WHO", required=True, help="Who decides.")
@click.option("--reason", metavar="TEXT", help="Why.")
@global_options
@click.pass_obj
def reject(settings: Settings, thread_id: str, which: str | None, by: str, reason: str | None) -> None:
    """Do not let an effect happen that waits for a decision: its call raises ApprovalRejectedError in the node.

    The decision is recorded with who, when and why, and nothing runs; `resume` goes on with the thread.
    """
    decide(settings, thread_id, which, Reject(by, reason))
