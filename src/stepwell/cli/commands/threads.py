"""`stepwell threads`: the threads of a database, last changed first."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, get_args

import click

from stepwell.cli.database import opened
from stepwell.cli.given import parse_filter
from stepwell.cli.listing import filter_option, page_options, say_more, write_page
from stepwell.cli.screen import cut, say, write_table
from stepwell.cli.settings import Settings, global_options
from stepwell.graph.types import Waiting
from stepwell.savers.threads import ThreadStatus, ThreadSummary


@click.command("threads")
@click.option(
    "--status",
    "statuses",
    type=click.Choice(get_args(ThreadStatus)),
    metavar="STATUS",
    multiple=True,
    help=f"Only these: {', '.join(get_args(ThreadStatus))}; may be repeated.",
)
@filter_option("Only where source, step, run_id, lineage or a key of the metadata of the newest checkpoint is this")
@page_options("CURSOR", "Only those behind this place: the `more` of a list that was cut.")
@global_options
@click.pass_obj
def threads(
    settings: Settings, statuses: tuple[str, ...], wanted: tuple[str, ...], limit: int | None, before: str | None
) -> None:
    """List the threads: status, steps, when each changed, until when it waits, and the error of its last run.

    `running` is a thread whose process is alive, `crashed` one whose process is gone: `resume` goes on with it.
    """
    matching = parse_filter(wanted)
    with opened(settings) as saver:
        page = saver.threads(status=statuses or None, filter=matching, before=before, limit=limit)
        found = list(page)
        locked = saver.is_locked
    if settings.json:
        write_page("threads", map(_facts, found), page.more)
        return
    if locked:
        say("The database is encrypted, and no key was given (--key-file): what is shown is what can be read without.")
        found = [replace(thread, damage=None) for thread in found]
    write_table(("thread", "status", "steps", "updated", "waits until", "last error"), list(map(_cells, found)))
    say_more(page.more)


def _facts(thread: ThreadSummary) -> dict[str, Any]:
    return {
        "thread": thread.thread_id,
        "status": thread.status,
        "steps": _steps(thread),
        "updated_at": thread.updated_at.isoformat(timespec="microseconds"),
        "error": thread.error,
        "damage": thread.damage,
        "waits": [_wait(wait) for wait in thread.waiting],
        "graph": thread.graph_id,
        "lineages": thread.lineages,
        "checkpoint": thread.checkpoint_id,
        "run": thread.run_id,
    }


def _cells(thread: ThreadSummary) -> tuple[str, ...]:
    trouble = thread.error or "" if thread.damage is None else f"damaged: {thread.damage}"
    due = min((wait.until for wait in thread.waiting if wait.until is not None), default=None)
    until = _moment(due) if due is not None else "a message" if thread.waiting else ""
    return thread.thread_id, thread.status, str(_steps(thread)), _moment(thread.updated_at), until, cut(trouble)


def _moment(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}Z"


def _wait(wait: Waiting) -> dict[str, str | None]:
    return {"kind": wait.kind, "key": wait.key, "until": None if wait.until is None else wait.until.isoformat()}


def _steps(thread: ThreadSummary) -> int:
    return max(thread.step or 0, 0)
