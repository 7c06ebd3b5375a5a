"""`stepwell export`: a thread into a file of its own."""

from __future__ import annotations

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.database import opened, thread_row
from stepwell.cli.screen import one_line, say, write_json
from stepwell.cli.settings import Settings, global_options


@click.command("export")
@thread_argument
@click.argument("path", metavar="FILE")
@global_options
@click.pass_obj
def export(settings: Settings, thread_id: str, path: str) -> None:
    """Write all of a thread to a file that `import` reads. A file that is there is not written over."""
    with opened(settings) as saver:
        with saver.store.reading() as reader:
            thread_row(reader, thread_id)
        written = saver.export_thread(thread_id, path)
    if settings.json:
        write_json(written._asdict())
    else:
        say(f"thread {one_line(thread_id)}: {written.rows} rows, {written.bytes:,} bytes in {path}")
