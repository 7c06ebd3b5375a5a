"""`stepwell verify`: check every row of the database, and say what depends on what is damaged."""

from __future__ import annotations

from typing import Any

import click

from stepwell.cli.completing import thread_ids
from stepwell.cli.database import opened, require_thread
from stepwell.cli.exit_status import FAILED, OK
from stepwell.cli.screen import one_line, say, write, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.savers.integrity.examining import Examination, LineageHealth, Standing
from stepwell.savers.integrity.saver import Verification

SHOWN = 8
"""As many checkpoints are named in a line."""


@click.command("verify")
@click.argument("thread_id", metavar="[T]", required=False, shell_complete=thread_ids)
@global_options
@click.pass_obj
def verify(settings: Settings, thread_id: str | None) -> int:
    """Check every row of every thread, or of one, and print a line for each fault; exit with 1 if there is one.

    What depends on what is damaged, and the command that goes on from the last good checkpoint, stands on stderr.
    """
    with opened(settings) as saver:
        if thread_id is not None:
            with saver.store.reading() as reader:
                require_thread(reader, thread_id)
        found = saver.verify(thread_id)
        locked = saver.is_locked
    if settings.json:
        write_json(_facts(settings, found))
        return OK if found.is_sound else FAILED
    for fault in found.faults:
        write(one_line(fault))
    for thread in found.threads:
        _say_what_depends(settings, thread)
    if found.is_sound:
        left = len(found.left_behind)
        rest = f", but for {left} that a repair has left behind" if left else ""
        say(f"{settings.place}: every row verifies{rest}")
        if locked:
            say("It is encrypted: with its keys (--key-file) verify also finds what was altered on purpose.")
    return OK if found.is_sound else FAILED


def _facts(settings: Settings, found: Verification) -> dict[str, Any]:
    return {
        "database": settings.place,
        "faults": list(map(str, found.faults)),
        "threads": [_thread_facts(settings, thread) for thread in found.threads],
        "left_behind": list(map(str, found.left_behind)),
    }


def _thread_facts(settings: Settings, thread: Examination) -> dict[str, Any]:
    first = thread.faults[0]
    return {
        "thread": thread.thread_id,
        "first": {"table": first.table, "place": first.place, "reason": first.reason},
        "unreadable": [
            {"checkpoint": each.checkpoint_id, "seq": each.seq, "lineage": each.lineage, "reason": each.fault}
            for each in thread.unreadable
        ],
        "lineages": [
            {"lineage": each.lineage, "head": each.head, "last_good": each.last_good} for each in thread.lineages
        ],
        "last_good": thread.last_good,
        "repair": settings.repair_command(thread.thread_id) if thread.last_good is not None else None,
    }


def _say_what_depends(settings: Settings, thread: Examination) -> None:
    name = one_line(thread.thread_id)
    say(f"thread {name}: the first bad record is {one_line(thread.faults[0])}")
    if thread.unreadable:
        say(f"thread {name}: {_unreadable(thread.unreadable)}")
    for lineage in thread.lineages:
        if not lineage.is_sound:
            say(f"thread {name}: {_lost(lineage)}")
    if thread.last_good is None:
        say(f"thread {name}: no checkpoint of it can be read. Restore it from a backup, or delete it")
    else:
        say(f"go on from {thread.last_good}: {settings.repair_command(thread.thread_id)}")


def _unreadable(lost: tuple[Standing, ...]) -> str:
    named = ", ".join(f"{one_line(each.checkpoint_id)} (step {each.step})" for each in lost[:SHOWN])
    more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
    return f"{len(lost)} checkpoints cannot be read: {named}{more}"


def _lost(lineage: LineageHealth) -> str:
    good = lineage.last_good
    return f"lineage {lineage.lineage} " + ("is lost" if good is None else f"can be read up to {good}")
