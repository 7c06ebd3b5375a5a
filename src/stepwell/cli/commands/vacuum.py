"""`stepwell vacuum`: give the room of what was deleted back."""

from __future__ import annotations

import click

from stepwell.cli.database import opened
from stepwell.cli.screen import say, write_json
from stepwell.cli.settings import Settings, global_options


@click.command("vacuum")
@click.option("--full", is_flag=True, help="PostgreSQL: write the tables anew. Nobody reads or writes meanwhile.")
@global_options
@click.pass_obj
def vacuum(settings: Settings, full: bool) -> None:
    """Give the room of what was deleted and pruned back.

    A SQLite file is written anew: that takes twice its size of free disk, and whoever writes waits until it is done.
    """
    with opened(settings) as saver:
        before, after = saver.vacuum(full=full)
    if settings.json:
        write_json({"database": settings.place, "bytes_before": before.bytes, "bytes": after.bytes})
    else:
        say(f"{settings.place}: {before.bytes:,} bytes before, {after.bytes:,} now")
