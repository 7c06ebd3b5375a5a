"""`stepwell prune`: checkpoints, or whole threads, that are not needed any more."""

from __future__ import annotations

import re
from datetime import timedelta

import click

from stepwell.cli.database import opened, thread_row
from stepwell.cli.exit_status import FAILED, OK
from stepwell.cli.screen import one_line, say, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.errors import UsageError
from stepwell.savers.retention.choosing import PruneReport, Ttl

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.command("prune")
@click.argument("thread_ids", metavar="[T]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All threads.")
@click.option("--keep-last", type=click.IntRange(min=1), metavar="N", help="Keep N checkpoints of each lineage.")
@click.option("--older-than", metavar="AGE", help="Keep what is younger: 90s, 15m, 12h, 30d, 4w.")
@click.option("--delete", is_flag=True, help="Delete whole threads that were not changed for AGE.")
@click.option("--unfinished", is_flag=True, help="With --delete: also those with something still to come.")
@global_options
@click.pass_obj
def prune(
    settings: Settings,
    thread_ids: tuple[str, ...],
    every: bool,
    keep_last: int | None,
    older_than: str | None,
    delete: bool,
    unfinished: bool,
) -> int:
    """Take old checkpoints out of threads; without an option all but the newest of each lineage.

    What something stands on stays: lineage heads, fork points, open questions, effects in doubt, receipts. With --all
    --delete --older-than AGE whole threads go that nothing has changed for so long; those with a question, a wait, a
    doubt or a message are skipped.
    """
    if every == bool(thread_ids):
        raise UsageError("Name threads, or say --all.")
    age = None if older_than is None else _age(older_than)
    if delete and (not every or age is None or keep_last is not None):
        raise UsageError("--delete goes with --all and --older-than. `stepwell delete T` deletes one thread.")
    if unfinished and not delete:
        raise UsageError("--unfinished goes with --delete.")
    with opened(settings) as saver:
        with saver.store.reading() as reader:
            for thread_id in thread_ids:
                thread_row(reader, thread_id)
        if delete and age is not None:
            report = saver.sweep(ttl=Ttl(age), unfinished=unfinished)
        else:
            report = saver.prune({} if every else list(thread_ids), keep_last=keep_last, older_than=age)
    _tell(settings, report)
    return FAILED if report.skipped and not delete else OK


def _age(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,6})([smhdw])", text)
    if found is None:
        raise UsageError(f"--older-than is an age like 90s, 15m, 12h, 30d or 4w, not {text!r}.")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def _tell(settings: Settings, report: PruneReport) -> None:
    if settings.json:
        write_json(
            {
                "threads": report.threads,
                "deleted": report.deleted,
                "checkpoints": report.checkpoints,
                "records": report.records,
                "events": report.events,
                "runs": report.runs,
                "held": report.held,
                "skipped": report.skipped,
            }
        )
        return
    for thread_id, why in report.skipped.items():
        say(f"thread {one_line(thread_id)} is left as it is: {one_line(why)}")
    if report.deleted:
        say(f"{report.deleted} threads deleted")
    say(
        f"{report.checkpoints} checkpoints and {report.records} records pruned from {report.threads} threads; "
        f"{report.held} checkpoints held. `stepwell vacuum` gives the room back."
    )
