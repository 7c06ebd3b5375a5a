"""`stepwell repair`: go on with a damaged thread from a checkpoint that can be read. No graph is needed."""

from __future__ import annotations

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.database import opened, require_thread
from stepwell.cli.screen import one_line, say, write, write_json
from stepwell.cli.settings import Settings, global_options


@click.command("repair")
@thread_argument
@click.option("--to", "checkpoint_id", metavar="CHECKPOINT", help="Go on from this checkpoint [the last good one].")
@click.option("--by", metavar="WHO", help="Who decides [the user of this process].")
@click.option("--reason", default="", metavar="TEXT", help="Why, for the record.")
@global_options
@click.pass_obj
def repair(settings: Settings, thread_id: str, checkpoint_id: str | None, by: str | None, reason: str) -> None:
    """Go on with a damaged thread from its last good checkpoint, or another one that can be read: a recorded fork.

    What is damaged stays where it is and is named; nothing runs. `verify` says which checkpoints can be read.
    """
    with opened(settings) as saver:
        with saver.store.reading() as reader:
            require_thread(reader, thread_id)
        done = saver.repair(thread_id, checkpoint_id, by=by, reason=reason)
    made = done.config["configurable"]["checkpoint_id"]
    if settings.json:
        write_json(
            {
                "thread": thread_id,
                "checkpoint": made,
                "lineage": done.lineage,
                "repaired_from": done.repaired_from,
                "left_behind": list(done.left_behind),
                "made_anew": [{"table": table, "place": place} for table, place in done.made_anew],
            }
        )
        return
    for told in done.left_behind:
        write(f"left behind: {one_line(told)}")
    for table, place in done.made_anew:
        write(f"made anew: {table} row{' at ' + one_line(place) if place else ''}")
    name = one_line(thread_id)
    say(f"thread {name}: lineage {done.lineage} at {made} goes on from {done.repaired_from}. `resume` runs it")
