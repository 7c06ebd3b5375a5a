"""`stepwell threads`: the threads of a database, last changed first."""

from __future__ import annotations

from typing import Any

import click

from stepwell.cli.database import opened
from stepwell.cli.screen import cut, moment, short_moment, write_json, write_table
from stepwell.cli.settings import Settings, global_options
from stepwell.savers.threads import status_of
from stepwell.store import Reader, Store, ThreadRow, ThreadsQuery


@click.command("threads")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many.")
@global_options
@click.pass_obj
def threads(settings: Settings, limit: int | None) -> None:
    """List the threads: status, steps, when each changed, and the error of its last run."""
    with opened(settings) as saver, saver.store.reading() as reader:
        found = [(row, _facts(saver.store, reader, row)) for row in reader.threads(ThreadsQuery(limit=limit))]
    if settings.json:
        write_json([facts for _, facts in found])
        return
    rows = [
        (row.thread_id, facts["status"], str(facts["steps"]), short_moment(row.updated_at), cut(facts["error"] or ""))
        for row, facts in found
    ]
    write_table(("thread", "status", "steps", "updated", "last error"), rows)


def _facts(store: Store, reader: Reader, row: ThreadRow) -> dict[str, Any]:
    newest = reader.newest(row.thread_id, "")
    runs = reader.runs(row.thread_id)
    return {
        "thread": row.thread_id,
        "status": status_of(store, row),
        "steps": max(newest.step, 0) if newest is not None else 0,
        "updated_at": moment(row.updated_at),
        "error": (runs[0].error or None) if runs else None,
        "graph": row.graph_id,
        "lineages": row.lineages,
        "run": runs[0].run_id if runs else None,
    }
