"""`stepwell copy`: all of a thread under another id."""

from __future__ import annotations

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.database import opened, thread_row
from stepwell.cli.screen import one_line, say, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.cli.stored import newest_id
from stepwell.savers.threads import status_of


@click.command("copy")
@thread_argument
@click.argument("target_id", metavar="NEW")
@global_options
@click.pass_obj
def copy(settings: Settings, thread_id: str, target_id: str) -> None:
    """Copy all of a thread, lineages and runs included, to an id that is not taken.

    A run that is going on is copied as if its process had died: whoever resumes the copy goes on with it.
    """
    with opened(settings) as saver:
        with saver.store.reading() as reader:
            thread_row(reader, thread_id)
        saver.copy_thread(thread_id, target_id)
        with saver.store.reading() as reader:
            status = status_of(saver.store, thread_row(reader, target_id))
            checkpoint = newest_id(reader, target_id)
    if settings.json:
        write_json({"thread": target_id, "copied_from": thread_id, "status": status, "checkpoint": checkpoint})
    else:
        say(f"thread {one_line(target_id)}: a copy of {one_line(thread_id)}, {status}")
