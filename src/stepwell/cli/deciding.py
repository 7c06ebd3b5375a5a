"""What `approve` and `reject` have in common: a decision is put on record. No graph is needed; nothing runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.cli.commands.journal import facts_of
from stepwell.cli.database import opened, thread_row
from stepwell.cli.given import parse_json
from stepwell.cli.rendering import opaque_codec
from stepwell.cli.screen import one_line, say, write, write_json
from stepwell.cli.settings import Settings
from stepwell.clock import SystemClock
from stepwell.errors import UsageError
from stepwell.graph.approval import Approve, Reject
from stepwell.runtime.config import RunConfig
from stepwell.runtime.effects.deciding import record_decision
from stepwell.runtime.reading.journal import journal


def decide(settings: Settings, thread_id: str, which: str | None, answer: Approve | Reject) -> None:
    """Record the decision and print it."""
    codec = opaque_codec()
    with opened(settings) as saver:
        with saver.store.reading() as reader:
            thread_row(reader, thread_id)
        seq, decision = record_decision(saver.store, codec, SystemClock(), thread_id, which, answer)
        entry = next(journal(saver.store, codec, RunConfig(thread_id), before=seq + 1, limit=1))
    if settings.json:
        write_json(facts_of(entry))
        return
    write(f"{one_line(entry.name)} of thread {one_line(thread_id)}: {one_line(str(decision))}")
    say(f"go on with it: {settings.resume_command('MODULE:GRAPH', thread_id)}")


def parse_arguments(texts: Sequence[str]) -> dict[str, Any]:
    """Return the arguments to change, from `NAME=JSON` texts."""
    changed: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise UsageError(f"--set takes NAME=JSON, as in --set cents=500, not {text!r}.")
        if name in changed:
            raise UsageError(f"--set is given twice for {name}.")
        changed[name] = parse_json(value, f"--set {name}")
    return changed
