"""Values through a saver: what comes back is what went in; what could not come back is refused before it is stored."""

import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv6Address
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel

from stepwell import (
    Command,
    SqliteSaver,
    StateGraph,
    StateValidationError,
    UnknownTypeError,
    UnserializableValueError,
    interrupt,
    register_type,
)
from tests.runtime.graphs import Call, Counted, Log, chain, fan, note, thread


class Box(TypedDict, total=False):
    value: Any
    log: list[str]


def storing(value: Any) -> StateGraph[Any, Any, Any, Any]:
    """Return a graph that puts the value in its state, then looks at it."""
    look = ("look", lambda state: {"log": [type(state["value"]).__name__]})
    return chain(("put", lambda state: {"value": value}), look, schema=Box)


# -- exact values -----------------------------------------------------------------------------------------------------

CONTAINERS = [
    OrderedDict([("b", 1), ("a", 2)]),
    Counter("hello"),
    deque([1, 2, 3], maxlen=3),
    {(1, "a"): {2, 3}, 4: frozenset({"x"})},
    [(), [[]], {}],
]


@pytest.mark.parametrize("value", CONTAINERS, ids=lambda value: type(value).__name__)
def test_F4_containers_come_back_as_they_were(value: Any, call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """LangGraph's report 8184: containers came back as plain dicts, a deque without its bound. INV-12."""
    graph = storing(value).compile(checkpointer=saver)
    live = call(graph, {}, thread(), durability=any_durability)["value"]
    stored = graph.get_state(thread()).values["value"]
    for found in (live, stored):
        assert found == value
        assert type(found) is type(value)
        assert getattr(found, "maxlen", 3) == 3


def test_F4_a_defaultdict_keeps_its_factory(call: Call, saver: SqliteSaver) -> None:
    """Later code would raise KeyError without it."""
    graph = storing(defaultdict(list, a=[1])).compile(checkpointer=saver)
    call(graph, {}, thread())
    found = graph.get_state(thread()).values["value"]
    assert (found["a"], found["new"], type(found)) == ([1], [], defaultdict)


SCALARS = [
    Fraction(1, 3),
    2 + 3j,
    range(1, 10, 2),
    PurePosixPath("/a/b"),
    PureWindowsPath("c:/a"),
    Path("relative"),
    Decimal("1.10"),
    IPv6Address("::1"),
    UUID(int=7),
    timedelta(days=-1, microseconds=3),
    datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    datetime(2024, 1, 1, tzinfo=UTC),
    bytearray(b"\x00\xff"),
    2**200,
    -0.0,
]


@pytest.mark.parametrize("value", SCALARS, ids=lambda value: type(value).__name__)
def test_F5_scalars_of_the_standard_library_are_exact(value: Any, saver: SqliteSaver) -> None:
    """LangGraph's reports 8185 and 8326: fractions, complex numbers, ranges and paths could not be saved. INV-12."""
    graph = storing(value).compile(checkpointer=saver)
    graph.invoke({}, thread())
    found = graph.get_state(thread()).values["value"]
    assert (found, type(found), repr(found)) == (value, type(value), repr(value))


class Declined(Exception):
    def __init__(self, step: str, *, code: int) -> None:
        super().__init__(f"{step} declined")
        self.code = code


class Tries(TypedDict, total=False):
    errors: list[Declined | Exception]
    log: list[str]


def test_exceptions_a_node_has_caught_stay_exceptions(call: Call, saver: SqliteSaver, any_durability: str) -> None:
    """What was caught in one node is matched by class in the next, and after a reload."""

    def attempt(state: Tries) -> dict[str, Any]:
        try:
            try:
                raise TimeoutError("bank")
            except TimeoutError as error:
                raise Declined("payment", code=7) from error
        except Declined as error:
            return {"errors": [error]}

    def judge(state: Tries) -> dict[str, Any]:
        (error,) = state["errors"]
        return {"log": [f"{error}, code {error.code}, {error.__cause__!r}"] if isinstance(error, Declined) else []}

    graph = chain(("attempt", attempt), ("judge", judge), schema=Tries).compile(checkpointer=saver)
    assert call(graph, {}, thread(), durability=any_durability)["log"] == [
        "payment declined, code 7, TimeoutError('bank')"
    ]
    (stored,) = graph.get_state(thread()).values["errors"]
    assert (type(stored), stored.args, stored.code) == (Declined, ("payment declined",), 7)
    assert stored.__traceback__ is None


class Doc(BaseModel):
    class Phase(str, enum.Enum):  # noqa: UP042
        DRAFT = "draft"
        FINAL = "final"

    phase: Phase
    title: str = ""


class Desk(TypedDict):
    doc: Doc


def test_F1_an_enum_inside_a_class_comes_back_in_another_saver(tmp_path: Path) -> None:
    """LangGraph's report 6718: an enum defined in a class came back as None after a reload."""
    finish = chain(("finish", lambda state: {"doc": Doc(phase=Doc.Phase.FINAL)}), schema=Desk)
    with SqliteSaver(tmp_path / "desk.db") as saver:
        finish.compile(checkpointer=saver).invoke({"doc": Doc(phase=Doc.Phase.DRAFT)}, thread())
    again = chain(("finish", lambda state: {}), schema=Desk)
    with SqliteSaver(tmp_path / "desk.db") as saver:
        found = again.compile(checkpointer=saver).get_state(thread()).values["doc"]
    assert found == Doc(phase=Doc.Phase.FINAL)
    assert found.phase is Doc.Phase.FINAL


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [object(), {"frame": [1, object()]}, lambda: None, open], ids=["object", "nested", "lambda", "builtin"]
)
def test_F7_what_cannot_be_stored_fails_where_it_was_made(
    value: Any, call: Call, saver: SqliteSaver, any_durability: str
) -> None:
    """LangGraph's report 4322: a data frame in the state worked until a saver was attached, then failed deep inside."""
    before, values = Counted("before"), iter([value, "plain"])
    graph = chain(
        ("before", before), ("make", lambda s: {"value": next(values)}), ("after", lambda s: {}), schema=Box
    ).compile(checkpointer=saver)
    with pytest.raises(UnserializableValueError, match="value") as raised:
        call(graph, {"log": []}, thread(), durability=any_durability)
    assert "make" in str(raised.value)
    (task,) = graph.get_state(thread()).tasks
    assert task.name == "make"
    assert "UnserializableValueError" in (task.error or "")
    assert call(graph, None, thread(), durability=any_durability)["value"] == "plain"
    assert before.calls == 1


def test_F7_siblings_of_what_cannot_be_stored_keep_their_results(saver: SqliteSaver, any_durability: str) -> None:
    """Only the task that wrote it fails and runs again."""
    good, values = Counted("good", lambda s: {"log": ["good"]}), iter([object(), 1])
    graph = fan(("good", good), ("make", lambda s: {"value": next(values)}), schema=Box).compile(checkpointer=saver)
    with pytest.raises(UnserializableValueError, match="make"):
        graph.invoke({}, thread(), durability=any_durability)
    assert graph.get_state(thread()).next == ("make",)
    assert graph.invoke(None, thread(), durability=any_durability) == {"log": ["good"], "value": 1}
    assert good.calls == 1


def test_F7_without_a_saver_any_value_may_travel(call: Call) -> None:
    value = object()
    assert call(storing(value).compile(), {})["value"] is value


def test_an_input_that_cannot_be_stored_is_refused_and_leaves_no_thread(call: Call, saver: SqliteSaver) -> None:
    graph = storing(1).compile(checkpointer=saver)
    with pytest.raises(UnserializableValueError, match="value"):
        call(graph, {"value": object()}, thread())
    assert graph.get_state(thread()).created_at is None
    assert call(graph, {"value": 0}, thread())["value"] == 1


class Tool:
    """A tool whose stored form cannot be loaded any more."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tool) and other.name == self.name

    __hash__ = None  # type: ignore[assignment]


def broken_load(name: str) -> Tool:
    raise ValueError("validation of the tool failed")


register_type(Tool, name="tests.Tool", dump=lambda tool: tool.name, load=broken_load)


@pytest.mark.parametrize("where", ["state", "question"])
def test_C5_what_could_not_be_loaded_at_the_answer_is_refused_at_the_pause(
    where: str, call: Call, saver: SqliteSaver
) -> None:
    """Langflow's pull request 15241: a stored tool did not load back, so the paused run could never be resumed."""
    state = Tool("search") if where == "state" else None
    question = Tool("search") if where == "question" else "sure?"
    graph = chain(
        ("plan", lambda s: {"value": state}), ("ask", lambda s: {"log": [interrupt(question)]}), schema=Box
    ).compile(checkpointer=saver)
    with pytest.raises(UnserializableValueError, match="validation of the tool failed") as raised:
        call(graph, {}, thread())
    assert ("value" if where == "state" else "interrupt") in str(raised.value)
    assert graph.get_state(thread()).next == (("plan",) if where == "state" else ("ask",))


@dataclass
class Gone:
    """Stands for a class that the next release of a program no longer has."""

    number: int


class Before(TypedDict):
    value: Gone


class After(TypedDict):
    value: Any


@pytest.mark.parametrize("hook", [False, True])
def test_F2_a_type_that_is_gone_fails_closed(hook: bool, call: Call, tmp_path: Path) -> None:
    """LangGraph's report 6970: what could not be loaded became None, and the graph went on with a hollow state."""
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        graph = chain(("put", lambda s: {"value": Gone(7)}), schema=Before).compile(checkpointer=saver, name="g")
        call(graph, {"value": Gone(0)}, thread())
    with SqliteSaver(path, on_unknown_type=(lambda name, raw: (name, raw)) if hook else None) as saver:
        later = chain(("put", lambda s: {}), schema=After).compile(checkpointer=saver, name="g")
        if hook:
            assert "Gone" in later.get_state(thread()).values["value"][0]
            return
        with pytest.raises(UnknownTypeError, match=r"value holds a .*Gone"):
            later.get_state(thread())


# -- pydantic states --------------------------------------------------------------------------------------------------


class Basket(BaseModel):
    items: list[str] = []
    log: Annotated[list[str], lambda a, b: a + b] = []


@pytest.fixture
def values() -> Iterator[Any]:
    yield iter([None, ["apple"]])


def test_F8_a_value_against_the_model_is_refused_before_it_is_stored(
    call: Call, saver: SqliteSaver, any_durability: str, values: Iterator[Any]
) -> None:
    """LangGraph's report 6491: a wrong value was stored, and from then on not even the history could be read."""
    graph = chain(("fill", lambda state: {"items": next(values)}), ("after", note("after")), schema=Basket)
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(StateValidationError, match="Node 'fill' wrote an invalid value to field 'items'") as raised:
        call(compiled, {}, thread(), durability=any_durability)
    assert (raised.value.fields()["node"], raised.value.fields()["field"]) == ("fill", "items")
    snapshot = compiled.get_state(thread())
    assert snapshot.next == ("fill",)
    assert "StateValidationError" in (snapshot.tasks[0].error or "")
    assert next(compiled.get_state_history(thread())).next == ("fill",)
    result = call(compiled, None, thread(), durability=any_durability)
    assert result == {"items": ["apple"], "log": ["after"]}


def test_F8_a_refused_thread_can_be_edited(saver: SqliteSaver) -> None:
    graph = chain(("fill", lambda state: {"items": None}), ("after", note("after")), schema=Basket)
    compiled = graph.compile(checkpointer=saver)
    with pytest.raises(StateValidationError):
        compiled.invoke({}, thread())
    compiled.update_state(thread(), {"items": ["by hand"]}, as_node="fill")
    assert compiled.invoke(None, thread()) == {"items": ["by hand"], "log": ["after"]}


class Shelf(BaseModel):
    items: Any = None
    log: Annotated[list[str], lambda a, b: a + b] = []


def test_F8_a_value_a_later_model_forbids_is_read_in_history_and_can_be_edited(saver: SqliteSaver) -> None:
    """What stands in a thread is read as it is, so a thread that a stricter release finds can always be repaired."""
    written = chain(("fill", lambda state: {"items": None}), ("ask", note("ask")), schema=Shelf)
    written.compile(checkpointer=saver, name="g", interrupt_before=["ask"]).invoke({}, thread())
    strict = chain(("fill", lambda state: {}), ("ask", note("ask")), schema=Basket)
    compiled = strict.compile(checkpointer=saver, name="g", interrupt_before=["ask"])
    assert compiled.get_state(thread()).values == {"items": None, "log": []}
    assert [state.values.get("items") for state in compiled.get_state_history(thread())][:2] == [None, None]
    compiled.update_state(thread(), {"items": ["by hand"]})
    assert compiled.invoke(None, thread()) == {"items": ["by hand"], "log": ["ask"]}


def test_a_question_and_its_answer_keep_their_types(call: Call, saver: SqliteSaver) -> None:
    def node(state: Log) -> dict[str, list[str]]:
        return {"log": [repr(interrupt({"until": Decimal("1.50"), "who": {"a", "b"}}))]}

    graph = chain(("node", node)).compile(checkpointer=saver)
    (question,) = call(graph, {}, thread())["__interrupt__"]
    assert question.value == {"until": Decimal("1.50"), "who": {"a", "b"}}
    assert graph.get_state(thread()).interrupts[0].value == question.value
    assert call(graph, Command(resume=Fraction(1, 2)), thread()) == {"log": ["Fraction(1, 2)"]}
