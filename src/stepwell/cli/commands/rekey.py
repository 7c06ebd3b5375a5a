"""`stepwell rekey`: every data key wrapped anew by the current key, so that an older one can go."""

from __future__ import annotations

import click

from stepwell.cli.database import opened
from stepwell.cli.exit_status import FAILED, OK
from stepwell.cli.screen import one_line, say, write, write_json
from stepwell.cli.settings import Settings, global_options


@click.command("rekey")
@global_options
@click.pass_obj
def rekey(settings: Settings) -> int:
    """Wrap every data key by the current key: the first one given. No row of any thread changes.

    Give the old keys too. When nothing is left to do, and no process wraps with an old key any more, that key can go.
    A call that was interrupted is repeated. Exits with 1 where a data key could not be unwrapped.
    """
    with opened(settings) as saver:
        done = saver.rekey()
    failed = {owner: str(error) for owner, error in done.failed.items()}
    if settings.json:
        facts = {"rewrapped": done.rewrapped, "current": done.current, "failed": failed}
        write_json({"database": settings.place, **facts})
    else:
        for told in failed.values():
            write(one_line(told))
        say(f"{settings.place}: {done.rewrapped} data keys wrapped anew, {done.current} were current")
    return FAILED if failed else OK
