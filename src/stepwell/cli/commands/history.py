"""`stepwell history`: the checkpoints of a thread, newest first. No value is decoded, so no graph is needed."""

from __future__ import annotations

from typing import Any

import click

from stepwell.cli.checkpoint_view import node_names
from stepwell.cli.database import reading, thread_row
from stepwell.cli.given import parse_filter
from stepwell.cli.screen import moment, short_moment, write_json, write_table
from stepwell.cli.settings import Settings, global_options
from stepwell.runtime.loading import row_name
from stepwell.store import CheckpointRow, HistoryQuery
from stepwell.superstep.body import open_checkpoint


@click.command("history")
@click.argument("thread_id", metavar="T")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many.")
@click.option(
    "--filter",
    "wanted",
    metavar="KEY=JSON",
    multiple=True,
    help="Only where source, step, run_id, lineage or a key of the metadata is this; may be repeated.",
)
@global_options
@click.pass_obj
def history(settings: Settings, thread_id: str, limit: int | None, wanted: tuple[str, ...]) -> None:
    """List the checkpoints of a thread, newest first."""
    query = HistoryQuery(thread_id, limit=limit, filter=parse_filter(wanted))
    with reading(settings) as reader:
        thread_row(reader, thread_id)
        rows = reader.history(query)
    if settings.json:
        write_json([_facts(row) for row in rows])
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
