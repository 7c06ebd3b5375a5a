"""History: newest first, page by page, by lineage; a cut is always said, and a page costs what it holds."""

from collections.abc import Iterator
from typing import Any, TypedDict

import pytest

from stepwell import (
    CompiledGraph,
    InMemorySaver,
    InvalidConfigError,
    SqliteSaver,
    StateSnapshot,
    UnknownCheckpointError,
    register_type,
)
from stepwell.store import Deletion
from stepwell.testing.store_suite.history import HOSTILE
from tests.runtime.graphs import ask, chain, letters, note, thread
from tests.stores.work import Work, counted

SHORT, LONG = 20, 300


def steps(snapshots: Any) -> list[int]:
    return [snapshot.metadata["step"] for snapshot in snapshots]


def places(snapshots: Any) -> list[tuple[int, int]]:
    return [(snapshot.lineage, snapshot.metadata["step"]) for snapshot in snapshots]


def at(graph: CompiledGraph, step: int) -> StateSnapshot:
    """Return the newest checkpoint of a step."""
    return next(graph.get_state_history(thread(), filter={"step": step}))


@pytest.fixture
def graph(saver: SqliteSaver) -> CompiledGraph:
    """A thread of 26 checkpoints: the input, START and 24 letters."""
    made: CompiledGraph = letters("abcdefghijklmnopqrstuvwx").compile(checkpointer=saver)
    made.invoke({}, thread())
    return made


@pytest.fixture
def branched(graph: CompiledGraph) -> CompiledGraph:
    """Lineage 1 forked off at step 3 and run for two steps more, lineage 2 off lineage 1 at its first step."""
    graph.fork(at(graph, 3).config)
    graph.invoke(None, thread(), interrupt_after=["e"])
    graph.fork(at(graph, 4).config)
    return graph


# -- pages ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 26, 100])
def test_E5_a_history_read_page_by_page_is_the_whole_history(graph: CompiledGraph, size: int) -> None:
    """However far back a checkpoint is, it is found; a cut is said by `more`, which goes on where it was cut."""
    whole = list(graph.get_state_history(thread()))
    assert steps(whole) == list(range(24, -2, -1))
    seen: list[StateSnapshot] = []
    cursor = None
    while True:
        page = graph.get_state_history(thread(), limit=size, before=cursor)
        assert page.more is None
        seen += page
        cursor = page.more
        if cursor is None:
            break
        assert len(seen) < len(whole)
    assert seen == whole


def test_a_limit_that_just_fits_cuts_nothing(graph: CompiledGraph) -> None:
    page = graph.get_state_history(thread(), limit=26)
    assert len(list(page)) == 26
    assert page.more is None


def test_a_limit_of_nothing_gives_nothing(graph: CompiledGraph) -> None:
    assert list(graph.get_state_history(thread(), limit=0)) == []


def test_a_page_on_from_a_cut_shows_the_results_of_its_first_tasks_too(graph: CompiledGraph) -> None:
    whole = list(graph.get_state_history(thread()))
    page = graph.get_state_history(thread(), before=whole[4].config)
    assert [snapshot.tasks for snapshot in page] == [snapshot.tasks for snapshot in whole[5:]]


def test_a_filter_counts_matches_and_pages_too(graph: CompiledGraph) -> None:
    page = graph.get_state_history(thread(), filter={"source": "loop"}, limit=20)
    assert steps(page) == list(range(24, 4, -1))
    assert steps(graph.get_state_history(thread(), filter={"source": "loop"}, before=page.more)) == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("value", HOSTILE)
def test_no_filter_widens_a_history(graph: CompiledGraph, value: str) -> None:
    """INV-14."""
    assert list(graph.get_state_history(thread(), filter={"source": value})) == []
    assert list(graph.get_state_history(thread(), filter={value: "loop"})) == []


def test_a_checkpoint_id_shows_that_checkpoint_alone(graph: CompiledGraph) -> None:
    config = at(graph, 3).config
    assert steps(graph.get_state_history(config)) == [3]
    assert steps(graph.get_state_history(config, filter={"source": "input"})) == []
    assert steps(graph.get_state_history(config, before=config)) == []


def test_a_thread_that_never_ran_has_no_history(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    page = graph.get_state_history(thread())
    assert (list(page), page.more) == ([], None)
    assert list(graph.get_state_history(thread(), lineage="current")) == []


@pytest.mark.parametrize(
    "wrong",
    [{"limit": -1}, {"limit": True}, {"lineage": "newest"}, {"lineage": 7}, {"before": thread()}, {"filter": 3}],
)
def test_what_is_wrong_is_said_before_anything_is_read(graph: CompiledGraph, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfigError):
        graph.get_state_history(thread(), **wrong)


def test_a_cursor_that_is_not_the_threads_is_an_error_not_a_longer_list(graph: CompiledGraph) -> None:
    stranger = {"configurable": {"thread_id": "t", "checkpoint_id": "nowhere"}}
    with pytest.raises(UnknownCheckpointError):
        graph.get_state_history(thread(), before=stranger)
    with pytest.raises(UnknownCheckpointError):
        graph.get_state_history(stranger)


def test_a_thread_deleted_while_it_is_listed_is_said(graph: CompiledGraph, saver: SqliteSaver) -> None:
    page = graph.get_state_history(thread())
    next(page)
    saver.store.delete(Deletion("t", 1))
    with pytest.raises(UnknownCheckpointError, match="was deleted or pruned while its history was read"):
        list(page)
    assert list(graph.get_state_history(thread())) == []


async def test_the_async_history_is_the_same(graph: CompiledGraph) -> None:
    page = graph.aget_state_history(thread(), limit=20)
    seen = [snapshot async for snapshot in page]
    rest = graph.aget_state_history(thread(), before=page.more)
    seen += [snapshot async for snapshot in rest]
    assert seen == list(graph.get_state_history(thread()))
    assert rest.more is None


async def test_the_async_history_says_what_is_wrong(graph: CompiledGraph) -> None:
    with pytest.raises(InvalidConfigError):
        await anext(graph.aget_state_history(thread(), limit=-1))


def test_a_value_is_nobody_elses(saver: SqliteSaver) -> None:
    """What is done to one snapshot's values changes no other's."""
    graph = letters("ab").compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.update_state(thread(), {})
    first, second = list(graph.get_state_history(thread()))[:2]
    first.values["log"].append("changed")
    assert second.values == {"log": ["a", "b"]}
    assert graph.get_state(thread()).values == {"log": ["a", "b"]}


# -- lineages ---------------------------------------------------------------------------------------------------------


def test_the_whole_thread_is_listed_in_the_order_it_was_written(branched: CompiledGraph) -> None:
    """INV-9."""
    found = list(branched.get_state_history(thread()))
    assert places(found)[:5] == [(2, 5), (1, 6), (1, 5), (1, 4), (0, 24)]
    assert len(found) == 30
    assert [s.seq for s in found] == sorted((s.seq for s in found), reverse=True)


@pytest.mark.parametrize(
    ("lineage", "expected"),
    [
        (0, [(0, step) for step in range(24, -2, -1)]),
        (1, [(1, 6), (1, 5), (1, 4), *[(0, step) for step in range(3, -2, -1)]]),
        (2, [(2, 5), (1, 4), *[(0, step) for step in range(3, -2, -1)]]),
        ("current", [(2, 5), (1, 4), *[(0, step) for step in range(3, -2, -1)]]),
    ],
)
@pytest.mark.parametrize("size", [None, 2])
def test_a_lineage_shows_what_led_to_its_head(
    branched: CompiledGraph, lineage: Any, expected: list[tuple[int, int]], size: int | None
) -> None:
    seen: list[tuple[int, int]] = []
    cursor = None
    while True:
        page = branched.get_state_history(thread(), lineage=lineage, limit=size, before=cursor)
        seen += places(page)
        cursor = page.more
        if cursor is None:
            break
    assert seen == expected


def test_what_led_to_a_checkpoint(branched: CompiledGraph) -> None:
    config = at(branched, 2).config
    assert steps(branched.get_state_history(config, lineage="current")) == [2, 1, 0, -1]
    with pytest.raises(InvalidConfigError):
        branched.get_state_history(config, lineage=0)


def test_a_cursor_beside_the_line_is_refused(branched: CompiledGraph) -> None:
    beside = at(branched, 20).config
    with pytest.raises(InvalidConfigError, match="did not lead to lineage 1"):
        branched.get_state_history(thread(), lineage=1, before=beside)


def test_where_a_line_leaves_a_lineage_the_results_stay_those_of_that_lineage(branched: CompiledGraph) -> None:
    forked = next(s for s in branched.get_state_history(thread(), lineage=1) if s.lineage == 0)
    assert forked.tasks == at(branched, 3).tasks
    assert [task.result for task in forked.tasks] == [{"log": ["d"]}]


# -- order ------------------------------------------------------------------------------------------------------------


def test_D10_ids_and_times_say_nothing_about_order(saver: SqliteSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoint ids that sort backwards, all made in one moment: latest and history go by seq, on every backend."""
    from stepwell.engine import wiring as engine_wiring

    class Backwards:
        left = 1000

        def new(self) -> str:
            self.left -= 1
            return f"{self.left:04}"

    class Frozen(type(engine_wiring._CLOCK)):  # type: ignore[misc]
        def now(self) -> int:
            return 1_000_000

    monkeypatch.setattr(engine_wiring, "_IDS", Backwards())
    monkeypatch.setattr(engine_wiring, "_CLOCK", Frozen())
    graph = letters("abc").compile(checkpointer=saver)
    graph.invoke({}, thread())
    found = list(graph.get_state_history(thread()))
    ids = [snapshot.config["configurable"]["checkpoint_id"] for snapshot in found]
    assert ids == sorted(ids)
    assert len({snapshot.created_at for snapshot in found}) == 1
    assert steps(found) == [3, 2, 1, 0, -1]
    assert graph.get_state(thread()).values == {"log": ["a", "b", "c"]}


def test_D11_a_clock_that_steps_back_makes_nothing_older_the_latest(
    saver: SqliteSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each checkpoint is made five seconds before the one it follows; the last is the latest all the same."""
    from stepwell.engine import wiring as engine_wiring

    class SteppingBack(type(engine_wiring._CLOCK)):  # type: ignore[misc]
        at = 2_000_000_000_000_000

        def now(self) -> int:
            SteppingBack.at -= 5_000_000
            return SteppingBack.at

    monkeypatch.setattr(engine_wiring, "_CLOCK", SteppingBack())
    graph = chain(("a", note("a")), ("ask", ask("ask")), ("b", note("b"))).compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.update_state(thread(), {"log": ["edited"]}, as_node="ask")
    graph.invoke(None, thread())
    assert graph.get_state(thread()).values["log"] == ["a", "edited", "b"]
    made = [snapshot.created_at or "" for snapshot in graph.get_state_history(thread())]
    assert made == sorted(made)


# -- what a read costs ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def threads() -> Iterator[tuple[InMemorySaver, CompiledGraph]]:
    """Two threads that differ in length alone, each with a fork at its end."""
    with InMemorySaver() as saver:
        graph = chain(("a", note("a")), ("b", note("b"))).compile(checkpointer=saver)
        for name, length in (("short", SHORT), ("long", LONG)):
            graph.invoke({}, thread(name), interrupt_after=["a"])
            for _ in range(length):
                graph.update_state(thread(name), {}, as_node="a")
            last = graph.get_state(thread(name)).config
            for _ in range(2):
                graph.fork(last)
        yield saver, graph


def cost(saver: InMemorySaver, call: Any) -> Work:
    with counted(saver) as work:
        call()
    return work


READS: dict[str, Any] = {
    "get_state": lambda graph, name: graph.get_state(thread(name)),
    "the last page": lambda graph, name: list(graph.get_state_history(thread(name), limit=10)),
    "a page of a line": lambda graph, name: list(graph.get_state_history(thread(name), lineage=1, limit=10)),
    "the line of the trunk": lambda graph, name: list(graph.get_state_history(thread(name), lineage=0, limit=10)),
    "one checkpoint": lambda graph, name: graph.get_state(next(graph.get_state_history(thread(name))).config),
    "a fork": lambda graph, name: graph.fork(graph.get_state(thread(name)).config),
}


@pytest.mark.parametrize("read", READS)
def test_a_read_costs_what_it_returns_however_long_the_thread(
    threads: tuple[InMemorySaver, CompiledGraph], read: str
) -> None:
    """Many times the checkpoints: the same statements, and as many steps of the database's machine."""
    saver, graph = threads
    short, long = (cost(saver, lambda name=name: READS[read](graph, name)) for name in ("short", "long"))
    assert long.statements == short.statements
    assert long.steps <= short.steps * 1.1


def test_an_old_page_costs_what_the_last_one_costs(threads: tuple[InMemorySaver, CompiledGraph]) -> None:
    saver, graph = threads
    middle = list(graph.get_state_history(thread("long")))[LONG // 2].config
    last = cost(saver, lambda: list(graph.get_state_history(thread("long"), limit=10)))
    old = cost(saver, lambda: list(graph.get_state_history(thread("long"), limit=10, before=middle)))
    assert old.statements <= last.statements + 12  # the cursor, and where each lineage goes on from the page
    assert old.steps <= last.steps * 2


def test_nothing_is_read_before_it_is_asked_for(threads: tuple[InMemorySaver, CompiledGraph]) -> None:
    saver, graph = threads
    assert cost(saver, lambda: graph.get_state_history(thread("long"))).statements == 0
    one = cost(saver, lambda: next(graph.get_state_history(thread("long"))))
    page = cost(saver, lambda: list(graph.get_state_history(thread("long"), limit=16)))
    assert one == page


def test_a_page_takes_a_fixed_number_of_statements(threads: tuple[InMemorySaver, CompiledGraph]) -> None:
    saver, graph = threads
    costs = [cost(saver, lambda n=n: list(graph.get_state_history(thread("long"), limit=n))) for n in (2, 16)]
    assert costs[0].statements == costs[1].statements


class Parcel:
    """A value that counts how often one is made of what is stored."""

    opened = 0

    @classmethod
    def open(cls, stored: object) -> "Parcel":
        Parcel.opened += 1
        return cls()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parcel)

    __hash__ = None  # type: ignore[assignment]


register_type(Parcel, name="tests:parcel", dump=lambda parcel: None, load=Parcel.open)


class Cargo(TypedDict, total=False):
    parcel: Any


def test_G10_a_listed_history_opens_only_the_values_that_are_looked_at(memory_saver: InMemorySaver) -> None:
    """tinyagents' review, findings I8 and I9: a history of one decoded every record of the thread."""
    graph = chain(*((f"n{i}", lambda state: {"parcel": Parcel()}) for i in range(30)), schema=Cargo)
    compiled = graph.compile(checkpointer=memory_saver)
    compiled.invoke({}, thread())
    Parcel.opened = 0
    newest, *others = compiled.get_state_history(thread())
    assert [snapshot.metadata["step"] for snapshot in others] == list(range(29, -2, -1))
    assert Parcel.opened == 0
    assert newest.values == {"parcel": Parcel()}
    assert Parcel.opened == 1
    (one,) = memory_saver.list(thread(), limit=1)
    assert one.checkpoint["channel_values"] == {"parcel": Parcel()}
    assert Parcel.opened == 2
