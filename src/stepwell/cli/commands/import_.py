"""`stepwell import`: a thread from a file that `export` wrote."""

from __future__ import annotations

import click

from stepwell.cli.database import opened
from stepwell.cli.keys import encryption_of
from stepwell.cli.screen import one_line, say, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.savers.places import is_absent
from stepwell.savers.retention.moving import check_file, check_secrecy


@click.command("import")
@click.argument("path", metavar="FILE")
@global_options
@click.pass_obj
def import_(settings: Settings, path: str) -> None:
    """Write the thread of a file into the database, which is made if it is not there.

    A damaged file, and one whose thread is there, change nothing.
    """
    file = check_file(path)
    if is_absent(settings.path):  # nothing is made for a thread that it would not take
        check_secrecy(file, encryption_of(settings) is not None)
    with opened(settings, create=True) as saver:
        read = saver.import_thread(path)
    if settings.json:
        write_json(read._asdict())
    else:
        say(f"thread {one_line(read.thread_id)}: {read.rows} rows from {path}")
