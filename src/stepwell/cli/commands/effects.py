"""`stepwell effects`: what has been done to the outside world, by key, and what nobody knows. No graph is needed."""

from __future__ import annotations

from typing import Any

import click

from stepwell.cli.completing import thread_ids
from stepwell.cli.database import opened, thread_row
from stepwell.cli.listing import page_options, say_more, write_page
from stepwell.cli.rendering import VALUE, as_json, opaque_codec
from stepwell.cli.screen import cut, moment, say, short_moment, write_table
from stepwell.cli.settings import Settings, global_options
from stepwell.errors import UsageError
from stepwell.runtime.effects.deciding import open_approvals
from stepwell.runtime.loading import row_name
from stepwell.runtime.reading.bare import bare_base
from stepwell.runtime.reading.effect_list import Cursor, EffectStanding, list_effects
from stepwell.store import Store
from stepwell.superstep.body import open_checkpoint


@click.command("effects")
@click.argument("thread_id", metavar="[T]", required=False, shell_complete=thread_ids)
@click.option("--in-doubt", is_flag=True, help="Only those of which nobody knows whether they have happened.")
@page_options("CURSOR", "Only those behind this place: the `more` of a list that was cut.", option="--after")
@global_options
@click.pass_obj
def effects(settings: Settings, thread_id: str | None, in_doubt: bool, limit: int | None, after: str | None) -> None:
    """List the effects of a thread, or of all threads, as they stand: done, failed, compensated, running or in doubt.

    `resolve` says of one in doubt what happened.
    """
    with opened(settings) as saver:
        asked = _asked(saver.store, thread_id) if thread_id is not None and not in_doubt and after is None else []
        found, last = list_effects(saver.store, thread_id, in_doubt, limit, _place(after))
        if thread_id is not None and not found:
            with saver.store.reading() as reader:
                thread_row(reader, thread_id)
    more = None if last is None else ":".join(map(str, last))
    if settings.json:
        write_page("effects", map(_facts, found), more, approvals=asked)
        return
    write_table(("key", "thread", "node", "name", "status", "attempts", "started"), list(map(_cells, found)))
    for question in asked:
        say(f"{question['node']} asks for approval ({question['id']}): {cut(question['planned_action'])}")
        say(f"decide: {settings.approve_command(question['thread'], question['id'])}")
    say_more(more, option="--after")


def _asked(store: Store, thread_id: str) -> list[dict[str, Any]]:
    """Return the effects of a thread that wait for a decision, as JSON."""
    with store.reading() as reader:
        row = reader.newest(thread_id, "")
        if row is None:
            return []
        base = bare_base(reader, opaque_codec(), row, open_checkpoint(row.body, row_name(row)))
    return [
        {"id": question.interrupt_id, "thread": thread_id, "node": task.node, **as_json(question.value)[VALUE]}
        for task, question in open_approvals(base)
    ]


def _place(text: str | None) -> Cursor | None:
    if text is None:
        return None
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[1].isdigit():
        raise UsageError(f"--after {text!r} is no place in this list: it takes what the list said.")
    return parts[0], int(parts[1]), parts[2]


def _facts(effect: EffectStanding) -> dict[str, Any]:
    row = effect.row
    return {
        "key": row.key,
        "thread": row.thread_id,
        "scope": row.scope,
        "lineage": row.lineage,
        "node": row.node,
        "step_id": row.call_id,
        "name": row.name,
        "status": effect.status,
        "attempts": row.attempts,
        "fingerprint": row.fingerprint,
        "started_at": moment(row.started_at),
        "finished_at": moment(row.finished_at) if row.finished_at else None,
        "run": row.run_id or None,
        "seq": row.seq,
    }


def _cells(effect: EffectStanding) -> tuple[str, ...]:
    row = effect.row
    what = row.key, row.thread_id, row.node, row.name, effect.status
    return *what, str(row.attempts), short_moment(row.started_at)
