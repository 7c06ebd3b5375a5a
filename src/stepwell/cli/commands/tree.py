"""`stepwell tree`: the lineages of a thread, each under the one it was forked off. No graph is needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from stepwell.cli.arguments import thread_argument
from stepwell.cli.checkpoint_view import node_names
from stepwell.cli.database import reading, thread_row
from stepwell.cli.screen import write_json, write_table
from stepwell.cli.settings import Settings, global_options
from stepwell.cli.stored import place_of
from stepwell.runtime.reading.lineages import Lineage, read_lineages
from stepwell.store import Reader


@click.command("tree")
@thread_argument
@global_options
@click.pass_obj
def tree(settings: Settings, thread_id: str) -> None:
    """Show the lineages of a thread: where each was forked off, and where it ends.

    A star marks the one that a call without a checkpoint goes on with.
    """
    with reading(settings) as reader:
        thread_row(reader, thread_id)
        roots = [_facts(reader, thread_id, root) for root in read_lineages(reader, thread_id)]
    if settings.json:
        write_json({"thread": thread_id, "lineages": roots})
        return
    headers = ("lineage", "from step", "from checkpoint", "head step", "head", "next")
    write_table(headers, [row for root in roots for row in _rows(root, 0)])


def _facts(reader: Reader, thread_id: str, lineage: Lineage) -> dict[str, Any]:
    """Return a lineage and those below it as JSON."""
    return {
        "lineage": lineage.lineage,
        "current": lineage.is_current,
        "forked_from": _place(reader, thread_id, lineage.forked_from),
        "head": _place(reader, thread_id, lineage.head),
        "children": [_facts(reader, thread_id, child) for child in lineage.children],
    }


def _place(reader: Reader, thread_id: str, config: Any) -> dict[str, Any] | None:
    row = None if config is None else reader.checkpoint(thread_id, "", config["configurable"]["checkpoint_id"])
    return None if row is None else place_of(row)


def _rows(facts: dict[str, Any], depth: int) -> Iterator[tuple[str, ...]]:
    name = f"{'* ' if facts['current'] else '  '}{'  ' * depth}{facts['lineage']}"
    origin, head = facts["forked_from"], facts["head"]
    begun = (str(origin["step"]), origin["checkpoint"]) if origin is not None else ("", "")
    yield name, *begun, str(head["step"]), head["checkpoint"], node_names(head["next"])
    for child in facts["children"]:
        yield from _rows(child, depth + 1)
