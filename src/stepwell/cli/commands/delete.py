"""`stepwell delete`: a thread and everything under it, after a question."""

from __future__ import annotations

import sys

import click

from stepwell.cli.absent import unknown_thread
from stepwell.cli.arguments import thread_argument
from stepwell.cli.database import opened, thread_row
from stepwell.cli.exit_status import FAILED, OK
from stepwell.cli.screen import one_line, say, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.clock import SystemClock
from stepwell.errors import UsageError
from stepwell.savers.threads import status_of
from stepwell.store import Deletion, Store, ThreadRow


@click.command("delete")
@thread_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@global_options
@click.pass_obj
def delete(settings: Settings, thread_id: str, yes: bool) -> int:
    """Delete a thread: its checkpoints, runs and logs. A run that is going on can write nothing more.

    On a terminal it asks first, and exits with 1 where the answer is no. Elsewhere --yes must say so.
    """
    with opened(settings) as saver:
        with saver.store.reading() as reader:
            row = thread_row(reader, thread_id)
        if not yes and not _agreed(settings, saver.store, row):
            say("Nothing was deleted.")
            return FAILED
        if not saver.store.delete(Deletion(thread_id, SystemClock().now())):  # somebody else was faster
            with saver.store.reading() as reader:
                raise unknown_thread(reader, thread_id)
    if settings.json:
        write_json({"thread": thread_id, "deleted": True})
    else:
        say(f"thread {one_line(thread_id)} is deleted")
    return OK


def _agreed(settings: Settings, store: Store, row: ThreadRow) -> bool:
    if settings.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"There is nobody to ask whether thread {row.thread_id!r} shall go: say --yes.")
    at_work = " A run is at work on it and will be refused its next write." if store.is_held(row) else ""
    branches = "1 lineage" if row.lineages == 1 else f"{row.lineages} lineages"
    return click.confirm(
        f"Delete thread {one_line(row.thread_id)} ({status_of(store, row)}, {branches})?{at_work}",
        default=False,
        err=True,
    )
