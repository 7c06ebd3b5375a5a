"""What the shell completes from a database: threads, and the checkpoints and runs of a thread.

The rule: completion reads, makes no file, and offers nothing rather than an error. An id is offered only where a shell
takes it as one plain word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from stepwell.cli.settings import Settings
from stepwell.errors import StepwellError

if TYPE_CHECKING:
    from stepwell.store import Reader

MOST = 500
"""Items looked through, those changed last."""
_PLAIN = re.compile(r"[\w.:@%+=/-]+")


def thread_ids(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the threads of the database that begin with what is typed."""

    def found(reader: Reader) -> Iterable[str]:
        from stepwell.store import ThreadsQuery

        return [row.thread_id for row in reader.threads(ThreadsQuery(limit=MOST))]

    return _offered(context, incomplete, found)


def checkpoint_ids(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the checkpoints of the thread that stands before on the line."""

    def found(reader: Reader) -> Iterable[str]:
        from stepwell.store import HistoryQuery

        thread_id = context.params.get("thread_id")
        return [row.checkpoint_id for row in reader.history(HistoryQuery(thread_id, limit=MOST))] if thread_id else []

    return _offered(context, incomplete, found)


def run_ids(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the newest run of each thread."""

    def found(reader: Reader) -> Iterable[str]:
        from stepwell.store import ThreadsQuery

        threads = reader.threads(ThreadsQuery(limit=MOST))
        return [run.run_id for thread in threads for run in reader.runs(thread.thread_id, 1)]

    return _offered(context, incomplete, found)


def _offered(context: click.Context, incomplete: str, found: Callable[[Reader], Iterable[str]]) -> list[str]:
    from stepwell.cli.database import reading

    try:
        with reading(context.ensure_object(Settings)) as reader:
            ids = list(found(reader))
    except StepwellError:
        return []
    return [each for each in ids if each.startswith(incomplete) and _PLAIN.fullmatch(each)]
