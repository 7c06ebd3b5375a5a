"""`stepwell events`: the log of a run that keeps one, oldest entry first."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from stepwell.cli.absent import unknown_run
from stepwell.cli.completing import run_ids
from stepwell.cli.database import opened
from stepwell.cli.listing import page_options, say_more, write_page
from stepwell.cli.screen import brief, cut, moment, say, write
from stepwell.cli.settings import Settings, global_options
from stepwell.events import Event, UnknownEvent, name_of

if TYPE_CHECKING:
    from stepwell.events import LoggedEvent

_OWN = frozenset(field.name for field in fields(Event))


@click.command("events")
@click.argument("run_id", metavar="RUN", shell_complete=run_ids)
@page_options("OFFSET", "Only those behind this entry.", option="--after", type=click.IntRange(min=0), default=0)
@global_options
@click.pass_obj
def events(settings: Settings, run_id: str, limit: int | None, after: int) -> None:
    """List what a run has logged: `run --events`, or a graph compiled with events=True, keeps a log.

    To follow a run, ask again with --after and the last offset.
    """
    with opened(settings) as saver:
        run = saver.get_run(run_id)
        if run is None:
            raise unknown_run(run_id)
        found = saver.events(run_id, after=after, limit=None if limit is None else limit + 1)
    shown = found[:limit]
    more = shown[-1].offset if len(found) > len(shown) else None
    if settings.json:
        write_page("events", map(_facts, shown), more, run=run_id, thread=run.thread_id)
        return
    for told in map(_facts, shown):
        write(f"{told['offset']}  {told['at']}  {cut(told['event'])}  {brief(told['facts'])}")
    say_more(more, option="--after")
    if not run.events and not found:
        say(f"run {run_id} keeps no log: run it with --events, or compile the graph with events=True")


def _facts(entry: LoggedEvent) -> dict[str, Any]:
    event = entry.event
    if isinstance(event, UnknownEvent):
        name, facts = event.name, dict(event.facts)
    else:
        name = name_of(event)
        facts = {field.name: getattr(event, field.name) for field in fields(event) if field.name not in _OWN}
    return {"offset": entry.offset, "at": moment(event.at), "event": name, "facts": facts}
