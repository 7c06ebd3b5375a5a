"""`stepwell history`: the checkpoints of a thread, newest first. No value is decoded, so no graph is needed."""

from __future__ import annotations

from typing import Any

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.checkpoint_view import node_names
from stepwell.cli.completing import checkpoint_ids
from stepwell.cli.database import reading, thread_row
from stepwell.cli.given import parse_filter
from stepwell.cli.listing import filter_option, page_options, say_more, write_page
from stepwell.cli.screen import moment, short_moment, write_table
from stepwell.cli.settings import Settings, global_options
from stepwell.errors import UsageError
from stepwell.runtime.loading import row_name
from stepwell.store import CheckpointRow, HistoryQuery, Reader
from stepwell.superstep.body import open_checkpoint

CURRENT = "current"


def _line(context: click.Context, option: click.Parameter, value: str | None) -> int | str | None:
    """Return the number of a lineage, or "current"."""
    if value is None or value == CURRENT:
        return value
    if not value.isdecimal():
        raise click.BadParameter(f'{value!r} is neither the number of a lineage nor "{CURRENT}".')
    return int(value)


@click.command("history")
@thread_argument
@page_options("CHECKPOINT", "Only those older than this one.", shell_complete=checkpoint_ids)
@click.option(
    "--lineage",
    callback=_line,
    metavar="N",
    help='Only what led to the newest of this lineage; "current": to where the thread is now.',
)
@filter_option("Only where source, step, run_id, lineage or a key of the metadata is this")
@global_options
@click.pass_obj
def history(
    settings: Settings,
    thread_id: str,
    limit: int | None,
    before: str | None,
    lineage: int | str | None,
    wanted: tuple[str, ...],
) -> None:
    """List the checkpoints of a thread, newest first."""
    wanted_facts = parse_filter(wanted)
    with reading(settings) as reader:
        thread_row(reader, thread_id, before)
        query = HistoryQuery(
            thread_id,
            before_seq=None if before is None else reader.seq_of(thread_id, "", before),
            line_from=None if lineage is None else _head(reader, thread_id, lineage),
            limit=None if limit is None else limit + 1,
            filter=wanted_facts,
        )
        found = reader.history(query)
    rows = found[:limit]
    more = rows[-1].checkpoint_id if len(found) > len(rows) else None
    if settings.json:
        write_page("checkpoints", map(_facts, rows), more, thread=thread_id)
        return
    cells = [(row, _facts(row)) for row in rows]
    write_table(
        ("checkpoint", "step", "source", "lineage", "seq", "created", "next"),
        [
            (
                row.checkpoint_id,
                str(row.step),
                row.source,
                str(row.lineage),
                str(row.seq),
                short_moment(row.created_at),
                node_names(facts["next"]),
            )
            for row, facts in cells
        ],
    )
    say_more(more)


def _head(reader: Reader, thread_id: str, lineage: int | str) -> int:
    if isinstance(lineage, str):
        seq = reader.newest_seq(thread_id, "")
    else:
        seq = reader.head_seq(thread_id, "", lineage)
    if seq is None:
        raise UsageError(f"Thread {thread_id!r} has no lineage {lineage}. `tree` shows those it has.")
    return seq


def _facts(row: CheckpointRow) -> dict[str, Any]:
    opened = open_checkpoint(row.body, row_name(row))
    return {
        "checkpoint": row.checkpoint_id,
        "step": row.step,
        "source": row.source,
        "lineage": row.lineage,
        "seq": row.seq,
        "parent_seq": row.parent_seq,
        "created_at": moment(row.created_at),
        "run": row.run_id or None,
        "next": [planned[0] for planned in opened.next],
        "writers": list(opened.writers),
        "digest": row.digest.hex(),
    }
