"""`stepwell journal`: what a thread has recorded of its steps and effects, newest first. No graph is needed."""

from __future__ import annotations

from typing import Any

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.database import opened, thread_row
from stepwell.cli.driving import config_of
from stepwell.cli.listing import page_options, say_more
from stepwell.cli.rendering import as_json, opaque_codec
from stepwell.cli.screen import cut, json_text, short_moment, write, write_table
from stepwell.cli.settings import Settings, global_options
from stepwell.runtime.config import parse_config
from stepwell.runtime.reading.journal import journal as read_journal
from stepwell.runtime.reading.journal_entry import JournalEntry


@click.command("journal")
@thread_argument
@page_options("SEQ", "Only what is older than this entry.", type=click.IntRange(min=0))
@click.option("--lineage", type=click.IntRange(min=0), metavar="N", help="Only what led to the newest of this lineage.")
@global_options
@click.pass_obj
def journal(settings: Settings, thread_id: str, limit: int | None, before: int | None, lineage: int | None) -> None:
    """List what a thread has recorded of its steps and effects, newest first: one entry for each attempt and decision.

    With --json one line of JSON for each entry.
    """
    with opened(settings) as saver:
        with saver.store.reading() as reader:
            thread_row(reader, thread_id)
        address = parse_config(config_of(thread_id, None))
        page = read_journal(saver.store, opaque_codec(), address, limit=limit, before=before, lineage=lineage)
        if settings.json:
            for entry in page:
                write(json_text(facts_of(entry)))
        else:
            write_table(("seq", "at", "kind", "node", "action", "status", "attempt", "by"), list(map(_cells, page)))
        say_more(page.more)


def facts_of(entry: JournalEntry) -> dict[str, Any]:
    """Return an entry as JSON."""
    return {
        "seq": entry.seq,
        "kind": entry.kind,
        "name": entry.name,
        "step_id": entry.step_id,
        "status": entry.status,
        "planned_action": entry.planned_action,
        "inputs": as_json(entry.inputs),
        "versions": dict(entry.versions),
        "approval_status": entry.approval_status,
        "approval": as_json(entry.approval),
        "receipt": as_json(entry.receipt),
        "retry_count": entry.retry_count,
        "error_state": entry.error_state,
        "key": entry.key,
        "fingerprint": entry.fingerprint,
        "attempts": entry.attempts,
        "started_at": _iso(entry.started_at),
        "finished_at": _iso(entry.finished_at),
        "node": entry.node,
        "task": entry.task_id,
        "lineage": entry.lineage,
        "run": entry.run_id,
        "checkpoint": entry.checkpoint_id,
        "recorded_at": _iso(entry.recorded_at),
        "digest": entry.digest,
        "decision": entry.decision,
        "decided_by": entry.decided_by,
        "reason": entry.reason,
    }


def _iso(at: Any) -> str | None:
    return None if at is None else at.isoformat(timespec="microseconds")


def _cells(entry: JournalEntry) -> tuple[str, ...]:
    at = short_moment(round(entry.recorded_at.timestamp() * 1e6))
    status = entry.status if entry.error_state is None else f"{entry.status}: {entry.error_state}"
    action = cut(entry.planned_action)
    place = str(entry.seq), at, entry.kind, entry.node, action
    return *place, cut(status), str(entry.attempts), entry.decided_by or ""
