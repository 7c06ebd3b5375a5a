"""`stepwell signal`: a value for whatever waits on a thread, now or later. It needs no graph and runs nothing."""

from __future__ import annotations

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.database import opened
from stepwell.cli.given import parse_given
from stepwell.cli.rendering import opaque_codec
from stepwell.cli.screen import one_line, say, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.clock import SystemClock
from stepwell.ids import TimeOrderedIds
from stepwell.runtime.config import thread_id_of
from stepwell.runtime.mailing import send_signal


@click.command("signal")
@thread_argument
@click.argument("key", metavar="KEY")
@click.argument("value", metavar="JSON")
@click.option("--id", "signal_id", metavar="ID", help="The id of this signal: sent again under it, it counts once.")
@global_options
@click.pass_obj
def signal(settings: Settings, thread_id: str, key: str, value: str, signal_id: str | None) -> None:
    """Send a signal to a thread: the value, as JSON, for the next `wait_for(KEY)`.

    The thread may be running, waiting, or not have begun. Nothing is run: `resume` goes on with a waiting thread.
    """
    given = parse_given(value, "The value")
    with opened(settings) as saver:
        parts = (saver.store, opaque_codec(), SystemClock(), TimeOrderedIds())
        sent = send_signal(*parts, thread_id_of(thread_id), key, given, signal_id)
        with saver.store.reading() as reader:
            begun = reader.thread(thread_id) is not None
    if settings.json:
        write_json({"thread": thread_id, "key": key, "id": sent})
    else:
        say(
            f"signal {one_line(key)} is left for thread {one_line(thread_id)}"
            + ("" if begun else ", which has not begun")
        )
