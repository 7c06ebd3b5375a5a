"""`stepwell runs`: the runs of a thread, last started first."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.database import opened, thread_row
from stepwell.cli.listing import page_options, say_more, write_page
from stepwell.cli.screen import cut, short_moment, write_table
from stepwell.cli.settings import Settings, global_options

if TYPE_CHECKING:
    from stepwell.savers.runs import RunRecord


@click.command("runs")
@thread_argument
@page_options("RUN", "Only those before this run.")
@global_options
@click.pass_obj
def runs(settings: Settings, thread_id: str, limit: int | None, before: str | None) -> None:
    """List the runs of a thread, last started or taken over first: what was called, how it went, and when."""
    with opened(settings) as saver:
        with saver.store.reading() as reader:
            thread_row(reader, thread_id)
        page = saver.runs(thread_id, limit=limit, before=before)
    if settings.json:
        write_page("runs", map(_facts, page), page.more, thread=thread_id)
        return
    write_table(
        ("run", "kind", "status", "attempts", "started", "finished", "events", "error"), list(map(_cells, page))
    )
    say_more(page.more)


def _facts(run: RunRecord) -> dict[str, Any]:
    return {
        "run": run.run_id,
        "kind": run.kind,
        "status": run.status,
        "lineage": run.lineage,
        "durability": run.durability,
        "attempts": run.attempts,
        "started_at": _iso(run.started_at),
        "finished_at": _iso(run.finished_at),
        "checkpoint": run.checkpoint_id,
        "error": run.error,
        "events": run.events,
    }


def _cells(run: RunRecord) -> tuple[str, ...]:
    ended = "" if run.finished_at is None else _short(run.finished_at)
    counted = str(run.attempts), _short(run.started_at), ended, str(run.events)
    return run.run_id, run.kind, run.status, *counted, cut(run.error or "")


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="microseconds")


def _short(at: datetime) -> str:
    return short_moment(round(at.timestamp() * 1e6))
