"""A thread with every kind of row, and every way to damage one: what the tests of damage and repair share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from stepwell import Command, CompiledGraph, CorruptRecordError, effect, task
from stepwell.savers.keeping import KeepingSaver
from stepwell.store import EffectsQuery
from tests.integrity.grounds import Ground, InMemory
from tests.runtime.graphs import Flaky, ask, chain, note, thread
from tests.waiting.nodes import expect

KEYS = {
    "threads": ("thread_id",),
    "runs": ("run_id",),
    "checkpoints": ("thread_id", "seq"),
    "lineages": ("thread_id", "lineage"),
    "records": ("thread_id", "seq"),
    "events": ("run_id", "ordinal"),
    "inbox": ("thread_id", "message_id"),
    "effects": ("key", "thread_id"),
}
"""The tables whose rows are a thread's, and what tells their rows apart."""
TABLES = KEYS | {"anchors": ("thread_id", "seq"), "blobs": ("thread_id", "name"), "keys": ("thread_id",)}
"""Those, with what only some threads have."""
PLACES = {"lineages": "lineage", "checkpoints": "seq", "records": "seq", "events": "ordinal", "runs": "run_id"}
PLACES |= {"inbox": "message_id", "effects": "key"}
"""The column by which a fault names a row."""


EVENTS_TRIED = 29
"""Every so many events are damaged: all are alike."""


class Outside:
    """What has been done to the outside world."""

    def __init__(self) -> None:
        self.done: list[str] = []


class Damage(NamedTuple):
    """One way to damage one row."""

    table: str
    row: dict[str, Any]
    how: str
    column: str
    value: Any

    @property
    def place(self) -> str:
        """What a fault says where the row is."""
        return str(self.row[PLACES[self.table]]) if self.table in PLACES else ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the row is not at its place any more: it is gone, or the column that places it is another."""
        return self.how == "delete" or self.column in ("thread_id", PLACES.get(self.table), *TABLES[self.table])

    @property
    def may_shorten(self) -> bool:
        """Whether a list may leave the row out, since it is gone or not what is listed any more, or call it otherwise:
        what only names a checkpoint does not read it."""
        return self.is_elsewhere or self.column in ("kind", "namespace", "checkpoint_id", "lineage", "base_seq")

    def __str__(self) -> str:
        at = f" at {self.place}" if self.place else ""
        return f"{self.how} {self.column} of {self.table}{at}".replace("  ", " ")


class Scene:
    """Threads "t", "other" and their graph, as they were before any damage, in memory unless another ground is given.
    Where nothing is said of how thread "t" lives, it has every kind of row but what pruning leaves and large values."""

    def __init__(self, live: Callable[[Scene], object] | None = None, ground: Ground | None = None) -> None:
        self.ground = ground or InMemory()
        self.saver = self.ground.saver
        self.outside = Outside()
        self.graph = self._graph()
        (live or Scene.branched)(self)
        self.graph.invoke({}, thread("other"))
        self.ground.keep()
        self.rows = {table: [row for row in self.ground.rows(table) if row["thread_id"] == "t"] for table in TABLES}
        self._done = list(self.outside.done)

    def restore(self) -> None:
        """Undo everything since the scene was made."""
        self.ground.restore()
        self.outside.done[:] = self._done

    def count(self, table: str) -> int:
        """Return how many rows of thread "t" a table has."""
        return sum(row["thread_id"] == "t" for row in self.ground.rows(table))

    def damage(self, damage: Damage) -> bool:
        """Carry the damage out; False where the table itself does not allow it."""
        where = {key: damage.row[key] for key in TABLES[damage.table]}
        is_text = bool(damage.column) and isinstance(damage.row[damage.column], str)
        return self.ground.change(damage.table, where, damage.column, damage.value, is_text=is_text)

    def _graph(self) -> CompiledGraph:
        @task
        def prepare(what: str) -> str:
            return what.upper()

        @effect(on_doubt="raise", name="pay")
        def pay(what: str) -> str:
            self.outside.done.append(what)
            return f"paid {what}"

        def act(state: Any) -> dict[str, list[str]]:
            return {"log": [pay(prepare("x").result())]}

        nodes = (("act", act), ("expect", expect("expect", "go")), ("ask", ask("ask")), ("flaky", Flaky("flaky", 99)))
        graph: CompiledGraph = chain(("first", note("first")), *nodes).compile(
            checkpointer=self.saver, name="g", events=True
        )
        return graph

    def branched(self, name: str = "t") -> None:
        """Have a thread wait, be answered and fail, and fork it where it had acted; it waits again there."""
        graph, config = self.graph, thread(name)
        graph.invoke({}, config)
        forked = next(state.config for state in graph.get_state_history(config) if state.next == ("act",))
        graph.signal(config, "go", 1)
        graph.invoke(None, config)
        with suppress(ValueError):
            graph.invoke(Command(resume="yes"), config)
        graph.fork(forked)
        graph.invoke(None, config)
        graph.signal(config, "late", 2)


def damages(scene: Scene, table: str) -> Iterator[Damage]:
    """Yield for every row of thread "t" in a table a flip of a column and one of the body or digest, a loss and a swap
    with the next row. Over the rows, and all over where there is one row, every column has its turn."""
    rows = scene.rows[table]
    body = next((name for name in ("body", "input") if name in rows[0]), "digest")
    columns = list(rows[0])
    pairs = list(zip(rows, [*rows[1:], rows[0]], strict=True))[:: EVENTS_TRIED if table == "events" else 1]
    each = -(-len(columns) // len(pairs))
    for number, (row, other) in enumerate(pairs):
        for column in (columns * 2)[number * each % len(columns) :][:each]:
            yield Damage(table, row, "flip", column, flipped(row[column], number))
        yield Damage(table, row, "flip", body, flipped(row[body], number + 1))
        yield Damage(table, row, "delete", "", None)
        if other[body] != row[body]:
            yield Damage(table, row, "swap", body, other[body])


def newest_damages(scene: Scene) -> Iterator[Damage]:
    """Yield, for the newest checkpoint and the newest record, a flip of each column."""
    for table in ("checkpoints", "records"):
        newest = max(scene.rows[table], key=lambda row: int(row["seq"]))
        for column in newest:
            yield Damage(table, newest, "flip", column, flipped(newest[column], 1))


def flipped(value: Any, number: int) -> Any:
    """Return a value with one bit changed; every third text is none any more."""
    if value is None:
        return 5
    if isinstance(value, int):
        return value ^ (1 << number % 40)
    if isinstance(value, float):
        return value + 1.0
    data = bytearray(value.encode() if isinstance(value, str) else value)
    if not data:
        return b"\x07"
    at = number % len(data)
    data[at] ^= 0x80 if number % 3 == 0 else 0x01
    return bytes(data)


# -- what can be asked ------------------------------------------------------------------------------------------------

CORRUPT = "CorruptRecordError"
View = Callable[[], Any]


def views(scene: Scene, name: str) -> dict[str, View]:
    """Return everything that can be asked about a thread, by name."""
    graph, saver, config = scene.graph, scene.saver, thread(name)
    runs = [row["run_id"] for row in scene.rows["runs"]] if name == "t" else []
    asked: dict[str, View] = {
        "state": lambda: _facts(graph.get_state(config)),
        "history": lambda: list(map(_facts, graph.get_state_history(config))),
        "lineages": lambda: repr(graph.get_lineages(config)),
        "runs": lambda: list(saver.runs(name)),
        "tuple": lambda: repr(saver.get_tuple(config)),
        "journal": lambda: repr(list(graph.get_journal(config))),
        "effects": lambda: _effects(saver, name),
    }
    for run_id in runs:
        asked[f"run {run_id}"] = lambda run_id=run_id: saver.get_run(run_id)  # type: ignore[misc]
        asked[f"events {run_id}"] = lambda run_id=run_id: saver.events(run_id)  # type: ignore[misc]
    return asked


def ask_all(asked: dict[str, View]) -> dict[str, Any]:
    """Return what everything answers; only a `CorruptRecordError` is an answer too."""
    found: dict[str, Any] = {}
    for name, view in asked.items():
        try:
            found[name] = view()
        except CorruptRecordError:
            found[name] = CORRUPT
    return found


def _facts(state: Any) -> Any:
    return repr((state.values, state.next, state.config, state.metadata, state.created_at, state.tasks))


def _effects(saver: KeepingSaver, name: str) -> Any:
    with saver.store.reading() as reader:
        return reader.effects(EffectsQuery(name))
