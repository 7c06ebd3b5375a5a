"""What the pages claim is so: tests and files they name exist, links lead somewhere, tables of statuses and errors are
those of the code, and what no other test shows is shown here."""

import ast
import re
import sqlite3
import string
import time
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, TypedDict

import pytest

from stepwell import (
    START,
    GraphRecursionError,
    InvalidCheckpointerError,
    PoisonedRunError,
    RetryPolicy,
    Runtime,
    SqliteSaver,
    StateGraph,
    UnsupportedStorageError,
    errors,
    points,
)
from stepwell.runtime.ledger import LEASE_SECONDS
from stepwell.superstep import lifecycle
from stepwell.testing import SimulatedCrash
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Log, chain, letters, note, thread

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCED = re.compile(r"^```.*?^```", re.M | re.S)
INLINE = re.compile(r"`[^`\n]*`")
TEST = re.compile(r"`((?:tests|src/stepwell/testing)/[\w/]+\.py)(?:::(\w+))?`")
SOURCE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.M)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text())


@cache
def functions_of(path: Path) -> frozenset[str]:
    found = ast.walk(ast.parse(path.read_text()))
    return frozenset(node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def anchors_of(page: Path) -> frozenset[str]:
    headings = HEADING.findall(prose(page))
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_test_a_page_names_exists(page: Path) -> None:
    missing = []
    for file, test in TEST.findall(page.read_text()):
        path = ROOT / file
        if not path.is_file() or (test and test not in functions_of(path)):
            missing.append(f"{file}::{test}" if test else file)
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_source_file_a_page_names_exists(page: Path) -> None:
    known = [str(path.relative_to(ROOT)) for path in (*ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py"))]
    named = SOURCE.findall(prose(page))
    assert [file for file in named if not any(path == file or path.endswith(f"/{file}") for path in known)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(INLINE.sub("", prose(page))):
        path = (page.parent / target).resolve()
        if not path.exists() or (anchor and anchor not in anchors_of(path)):
            broken.append(f"{target}#{anchor}" if anchor else target)
    assert broken == []


def rows_of(page: str) -> dict[str, list[str]]:
    """Return the table rows of a page whose first cell is code: that cell's text → all cells."""
    rows = (line.strip().strip("|").split(" | ") for line in (ROOT / page).read_text().splitlines() if "|" in line)
    cells = ([cell.strip() for cell in row] for row in rows)
    return {row[0].strip("`"): row for row in cells if row[0].startswith("`")}


def error_classes() -> list[type[errors.StepwellError]]:
    found, kinds = [errors.StepwellError], [errors.StepwellError]
    while kinds:
        below = kinds.pop().__subclasses__()
        kinds += below
        found += [kind for kind in below if kind not in found]
    return [kind for kind in found if kind.__module__.startswith(errors.__name__)]


def every_class() -> list[type[Any]]:
    return [*error_classes(), errors.GraphInterrupt]


def test_the_page_of_errors_lists_every_code_with_its_class() -> None:
    listed = {code: row[1].strip("`") for code, row in rows_of("docs/errors.md").items()}
    promised = {kind.code: kind.__name__ for kind in every_class()}
    assert listed == promised


def test_no_fact_of_an_error_hides_what_every_error_has() -> None:
    """A fact becomes an attribute: one called `code` would stand where callers read the stable code."""
    facts = {
        (kind.__name__, name) for kind in error_classes() for _, name, _, _ in Formatter().parse(kind.__doc__ or "")
    }
    assert {(kind, name) for kind, name in facts if name in dir(errors.StepwellError)} == set()


class Fact:
    """Stands for a fact in an error's text, however it is formatted: `{seconds:.1f}` reads *seconds*."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __format__(self, spec: str) -> str:
        return f"*{self.name}*"


class Facts(dict[str, Fact]):
    def __missing__(self, name: str) -> Fact:
        return Fact(name)


def says(kind: type[BaseException]) -> str:
    """Return an error's text as the page shows it."""
    text = " ".join((kind.__doc__ or "").split())
    if issubclass(kind, errors.StepwellError):
        text = string.Formatter().vformat(text.replace("!r}", "}"), (), Facts())
    return text.replace("__", r"\_\_").replace("|", r"\|")


def test_the_page_of_errors_says_what_the_errors_say() -> None:
    rows = rows_of("docs/errors.md")
    for kind in every_class():
        assert rows[kind.code][3] == says(kind), f"docs/errors.md should say of {kind.code}: {says(kind)}"


def test_the_page_of_errors_says_which_are_also_errors_of_python() -> None:
    rows = rows_of("docs/errors.md")
    for kind in error_classes():
        own = [base for base in kind.__mro__ if base.__module__ == "builtins" and issubclass(base, Exception)]
        nearest = {
            base.__name__ for base in own if not any(issubclass(other, base) for other in own if other is not base)
        }
        assert set(re.findall(r"`(\w+)`", rows[kind.code][2])) == nearest - {"Exception"}, kind


def test_the_page_of_states_lists_what_the_lifecycle_knows() -> None:
    text = (ROOT / "docs" / "states.md").read_text()
    sections = {part.splitlines()[0]: part for part in re.split(r"^## ", text, flags=re.M)[1:]}
    statuses = {"empty", lifecycle.RUNNING, *lifecycle.ENDED}
    expected = {
        "Threads": statuses,
        "Runs": statuses - {"empty"},
        "Records": set(lifecycle.RECORD_KINDS),
        "Checkpoints": set(lifecycle.SOURCES),
    }
    for section, names in expected.items():
        assert set(re.findall(r"^\| `(\w+)` \|", sections[section], re.M)) == names, section


# -- what no other test shows ------------------------------------------------------------------------------------------


def die(graph: Any, given: Any) -> None:
    with pytest.raises(SimulatedCrash):
        graph.invoke(given, thread())


def test_a_task_keeps_its_id_over_attempts_and_crashes(deaths: Deaths) -> None:
    seen: list[str] = []

    def node(state: Log, runtime: Runtime[Any]) -> dict[str, list[str]]:
        assert runtime.execution_info is not None
        seen.append(runtime.execution_info.task_id)
        if len(seen) == 1:
            raise ConnectionError("not now")
        return {"log": ["done"]}

    at_once = RetryPolicy(initial_interval=0, jitter=False)
    graph = StateGraph(Log).add_node("before", note("before")).add_node("node", node, retry_policy=at_once)
    compiled = graph.add_edge(START, "before").add_edge("before", "node").compile(checkpointer=Saver(deaths.clock))
    deaths.dies_at(points.MERGED, nth=2)
    die(compiled, {})
    deaths.revive()
    deaths.dies_at(points.MERGED)
    die(compiled, None)
    deaths.revive()
    assert compiled.invoke(None, thread()) == {"log": ["before", "done"]}
    assert len(seen) == 4
    assert len(set(seen)) == 1


def test_a_run_that_kills_its_process_again_and_again_is_given_up(deaths: Deaths) -> None:
    graph = letters("a").compile(checkpointer=Saver(deaths.clock))
    for life in range(6):
        deaths.dies_at(points.TASK_STARTED)
        die(graph, None if life else {})
        deaths.revive()
    with pytest.raises(PoisonedRunError) as raised:
        graph.invoke(None, thread())
    assert raised.value.fields()["thread_id"] == "t"
    assert graph.retry(thread()) == {"log": ["a"]}


def test_a_lease_is_renewed_each_third_of_its_length(saver: SqliteSaver) -> None:
    renewed: list[int] = []

    def node(state: Log) -> dict[str, list[str]]:
        keeper = compiled._leases
        for later in (LEASE_SECONDS / 3 - 1, LEASE_SECONDS / 3 + 1):
            keeper.renew_due(time.monotonic() + later)
            renewed.append(saver.store.counts.renewals)
        return {}

    compiled = chain(("node", node)).compile(checkpointer=saver)
    compiled.invoke({}, thread())
    assert renewed == [0, 1]


def test_sync_is_the_default(saver: SqliteSaver) -> None:
    graph = letters("a").compile(checkpointer=saver)
    graph.invoke({}, thread())
    with saver.store.reading() as reader:
        assert [run.durability for run in reader.runs("t")] == ["sync"]


def test_connections_and_foreign_savers_are_refused() -> None:
    connection = sqlite3.connect(":memory:")
    try:
        with pytest.raises(UnsupportedStorageError, match=r'SqliteSaver\("threads\.db"\)'):
            SqliteSaver(connection)  # type: ignore[arg-type]
    finally:
        connection.close()
    with pytest.raises(InvalidCheckpointerError, match=r"Expected an instance of stepwell\.SqliteSaver"):
        letters("a").compile(checkpointer=object())


class Turns(TypedDict, total=False):
    turn: int


def test_a_limit_may_stop_a_run_or_bound_a_whole_thread(saver: SqliteSaver) -> None:
    graph = chain(("go", lambda state: {"turn": state["turn"] + 1}), schema=Turns)
    graph.add_conditional_edges("go", lambda state: "go" if state["turn"] < 100 else "__end__")
    compiled = graph.compile(checkpointer=saver)
    stopping = {"on_limit": "stop"}
    assert compiled.invoke({"turn": 0}, thread(recursion_limit=3), **stopping) == {"turn": 3}
    assert compiled.get_state(thread()).next == ("go",)
    assert compiled.invoke(None, thread(recursion_limit=3), **stopping) == {"turn": 6}, "a run has its own limit"
    for _ in range(2):
        assert compiled.invoke(None, thread(), thread_step_limit=8, **stopping) == {"turn": 8}, "a thread has one"
    with pytest.raises(GraphRecursionError, match="limit of 8"):
        compiled.invoke(None, thread(), thread_step_limit=8)
