"""Which queries the reader's methods ask: a source that is far is told of them before they are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.stores.shared.source import Source

_EXPECTED: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "thread": (("thread", ("thread_id",)),),
    "run": (("run", ("run_id",)),),
    "newest": (("tail", ("thread_id",)), ("newest", ("thread_id", "namespace"))),
    "id_of": (("id_of", ("thread_id", "seq")),),
    "records": (("records", ("thread_id", "base_seq")),),
    "records_of": (("records_of", ("thread_id", "base_seqs")),),
    "shape": (("shape", ("fingerprint",)),),
}
"""Which queries the reader's methods ask, with their first arguments."""


def foresee(source: Source, asked: str, of: Sequence[Any]) -> None:
    """Tell a source which queries a method is about to ask."""
    given = [source.listed(value) if type(value) is list else value for value in of]
    for name, columns in _EXPECTED[asked]:
        source.expect(name, dict(zip(columns, given, strict=False)))
