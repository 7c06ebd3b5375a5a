"""`stepwell resolve`: what an operator knows of an effect in doubt, put on record. No graph is needed."""

from __future__ import annotations

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.commands.journal import facts_of
from stepwell.cli.database import opened, thread_row
from stepwell.cli.given import parse_given
from stepwell.cli.rendering import opaque_codec
from stepwell.cli.screen import one_line, write, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.clock import SystemClock
from stepwell.errors import InvalidResolutionError
from stepwell.graph.types import MISSING
from stepwell.runtime.config import RunConfig
from stepwell.runtime.effects.resolving import decision_of, resolve as resolve_effect
from stepwell.runtime.reading.journal import journal


@click.command("resolve")
@thread_argument
@click.argument("key", metavar="KEY")
@click.option("--receipt", "text", metavar="JSON|@FILE", help="It has happened: calls return this.")
@click.option("--failed", metavar="WHY", help="It has not happened: a call performs it, under the same key.")
@click.option("--retry", is_flag=True, help="It is not known; one more attempt under the same key is allowed.")
@click.option("--by", metavar="WHO", help="Who decides [the user who runs this].")
@click.option("--reason", metavar="TEXT", default="", help="Why.")
@global_options
@click.pass_obj
def resolve(
    settings: Settings,
    thread_id: str,
    key: str,
    text: str | None,
    failed: str | None,
    retry: bool,
    by: str | None,
    reason: str,
) -> None:
    """Say what happened to an effect in doubt; `effects --in-doubt` lists them. `resume` goes on with the thread.

    The decision is recorded with who, when and why: `journal` shows it.
    """
    if (text is not None) + (failed is not None) + retry != 1:
        raise InvalidResolutionError(key=key, reason="say one of --receipt, --failed and --retry")
    receipt = MISSING if text is None else parse_given(text, "--receipt")
    decision = decision_of(key, receipt, retry, failed, by, reason)
    codec = opaque_codec()
    with opened(settings) as saver:
        with saver.store.reading() as reader:
            thread_row(reader, thread_id)
        seq = resolve_effect(saver.store, codec, SystemClock(), thread_id, key, decision)
        entry = next(journal(saver.store, codec, RunConfig(thread_id), before=seq + 1, limit=1))
    if settings.json:
        write_json(facts_of(entry))
    else:
        who = one_line(decision.by)
        write(f"{one_line(entry.name)} of thread {one_line(thread_id)}: {entry.status}, as {who} decided")
