"""`stepwell verify`: check every row of the database."""

from __future__ import annotations

import click

from stepwell.cli.database import opened
from stepwell.cli.exit_status import FAILED, OK
from stepwell.cli.screen import one_line, say, write, write_json
from stepwell.cli.settings import Settings, global_options


@click.command("verify")
@global_options
@click.pass_obj
def verify(settings: Settings) -> int:
    """Check every row of every thread and print a line for each fault; exit with 1 if there is one."""
    with opened(settings) as saver:
        faults = []
        for fault in saver.store.verify():
            faults.append(fault)
            if not settings.json:
                write(one_line(fault))
        locked = saver.is_locked
    if settings.json:
        write_json({"database": settings.place, "faults": faults})
    elif not faults:
        say(f"{settings.place}: every row verifies")
        if locked:
            say("It is encrypted: with its keys (--key-file) verify also finds what was altered on purpose.")
    return FAILED if faults else OK
