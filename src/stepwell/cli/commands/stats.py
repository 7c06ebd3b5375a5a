"""`stepwell stats`: what threads weigh, and which channel makes them grow."""

from __future__ import annotations

import click

from stepwell.cli.database import opened, thread_row
from stepwell.cli.screen import one_line, say, write_json, write_table
from stepwell.cli.settings import Settings, global_options
from stepwell.savers.retention.weighing import Stats, ThreadWeight


@click.command("stats")
@click.argument("thread_id", metavar="[T]", required=False)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="So many of the heaviest.")
@global_options
@click.pass_obj
def stats(settings: Settings, thread_id: str | None, limit: int) -> None:
    """Weigh a thread by tables and channels, or list the heaviest threads, each with the channel that grows."""
    with opened(settings) as saver:
        if thread_id is not None:
            with saver.store.reading() as reader:
                thread_row(reader, thread_id)
        found = saver.stats(thread_id, limit=limit)
    if settings.json:
        write_json(_facts(settings.place, found))
        return
    if thread_id is None:
        free = "" if found.size.free is None else f", {found.size.free:,} of them free"
        say(f"{settings.place}: {found.size.bytes:,} bytes{free}")
        headers = ("thread", "bytes", "checkpoints", "held", "records", "channel that grows")
        write_table(headers, [_line(each) for each in found.threads])
    else:
        (weight,) = found.threads
        cells = [(name, f"{size:,}", "", "") for name, size in weight.tables.items()]
        cells += [
            (f"  {each.channel}", f"{each.bytes:,}", f"{each.per_checkpoint:,.0f}", f"{each.growth:+,.1f}")
            for each in weight.channels
        ]
        write_table(("table, channel", "bytes", "a checkpoint", "more each time"), cells)
        say(f"{weight.bytes:,} bytes in all. " + _said(weight))
    for name, why in found.unread.items():
        say(f"thread {one_line(name)} could not be weighed: {one_line(why)}")


def _line(weight: ThreadWeight) -> tuple[str, ...]:
    counts = (weight.checkpoints, weight.held, weight.records)
    return (weight.thread_id, f"{weight.bytes:,}", *map(str, counts), weight.grows or "")


def _said(weight: ThreadWeight) -> str:
    if weight.grows is None:
        return "No channel grows with every superstep."
    return f"Channel {one_line(weight.grows)} grows with every superstep."


def _facts(place: str, found: Stats) -> dict[str, object]:
    return {
        "database": place,
        "bytes": found.size.bytes,
        "free": found.size.free,
        "threads": [
            {
                "thread": each.thread_id,
                "bytes": each.bytes,
                "checkpoints": each.checkpoints,
                "held": each.held,
                "records": each.records,
                "tables": each.tables,
                "channels": {channel.channel: channel.bytes for channel in each.channels},
                "grows": each.grows,
            }
            for each in found.threads
        ],
        "unread": found.unread,
    }
