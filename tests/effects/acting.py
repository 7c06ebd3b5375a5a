"""An outside world in memory that counts what is done to it, and graphs of one node that acts on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from stepwell import START, SqliteSaver, StateGraph
from stepwell.store import EffectRow, EffectsQuery
from tests.runtime.graphs import Log

DURABILITIES = ("sync", "async", "exit")


class Outside:
    """The other side. Honours keys: what is asked for again under one key is not done again."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        """Key and content of every request that came through."""
        self.done: dict[str, str] = {}
        self.refusals: list[BaseException] = []
        """Raised by the next requests, before anything is done."""
        self.losses: list[BaseException] = []
        """Raised by the next requests, after it is done."""

    def act(self, key: str, content: Any) -> str:
        if self.refusals:
            raise self.refusals.pop(0)
        self.asked.append((key, content))
        receipt = self.done.setdefault(key, f"{content} #{len(self.done) + 1}")
        if self.losses:
            raise self.losses.pop(0)
        return receipt

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.asked]

    @property
    def times(self) -> dict[Any, int]:
        """How often each content was asked for."""
        return dict(Counter(content for _, content in self.asked))


def one(node: Callable[..., Any], saver: SqliteSaver | None, **options: Any) -> Any:
    """Return a graph of one node."""
    return StateGraph(Log).add_node("n", node, **options).add_edge(START, "n").compile(checkpointer=saver)


def rows(saver: SqliteSaver, thread_id: str | None = None, in_doubt: bool = False) -> list[EffectRow]:
    """Return the effects of a thread, or of all, as they stand."""
    with saver.store.reading() as reader:
        return reader.effects(EffectsQuery(thread_id, in_doubt))


def statuses(saver: SqliteSaver, thread_id: str | None = None) -> list[str]:
    return [row.status for row in rows(saver, thread_id)]
