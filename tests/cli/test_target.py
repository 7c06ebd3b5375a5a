"""`MODULE:GRAPH`: what it finds, under which name, and what it says where there is nothing."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell.cli.target import load_graph
from stepwell.errors import StepwellError
from tests.cli.calls import Call

SOURCE = """
from typing import TypedDict
from stepwell import START, StateGraph
from tests.cli.calls import Call

class State(TypedDict, total=False):
    n: int

class Holder:
    graph = StateGraph(State).add_node("one", lambda state: {"n": 1}).add_edge(START, "one")

graph = Holder.graph
"""


@pytest.fixture(autouse=True)
def forget_modules() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("wf_")]:
        del sys.modules[name]


def write(path: Path, source: str = SOURCE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    return path


def test_a_file_and_a_module_name_find_the_same_graph(folder: Path) -> None:
    write(folder / "wf_plain.py")
    assert load_graph("wf_plain.py:graph") is load_graph("wf_plain:graph") is load_graph("./wf_plain.py:Holder.graph")


def test_a_file_in_a_package_is_imported_under_its_dotted_name(folder: Path) -> None:
    write(folder / "wf_app" / "__init__.py", "")
    write(folder / "wf_app" / "inner" / "__init__.py", "")
    write(folder / "wf_app" / "inner" / "flow.py", "from wf_app.parts import graph\n")
    write(folder / "wf_app" / "parts.py")
    assert load_graph("wf_app/inner/flow.py:graph") is load_graph("wf_app.inner.flow:graph")
    assert sys.modules["wf_app.inner.flow"].__name__ == "wf_app.inner.flow"


def test_a_file_imports_its_neighbours(folder: Path) -> None:
    write(folder / "wf_far" / "wf_parts.py")
    write(folder / "wf_far" / "wf_flow.py", "from wf_parts import graph\n")
    assert load_graph("wf_far/wf_flow.py:graph") is sys.modules["wf_parts"].graph


@pytest.mark.parametrize(
    ("target", "code", "reason"),
    [
        ("graph", "usage_error", "'graph' names no graph: write MODULE:GRAPH"),
        (":graph", "usage_error", "names no graph"),
        ("wf_x:", "usage_error", "names no graph"),
        ("wf_nowhere:graph", "usage_error", "There is no module 'wf_nowhere'"),
        ("wf_x.deeper:graph", "usage_error", "There is no module 'wf_x.deeper'"),
        ("wf_nowhere.py:graph", "usage_error", "There is no file 'wf_nowhere.py'"),
        ("wf_x.py:nope", "usage_error", "wf_x.py has no 'nope'. It has: graph."),
        ("wf_x.py:State", "usage_error", "not a stepwell.StateGraph"),
        ("wf_empty.py:graph", "usage_error", "It has: no graph."),
        ("wf_raises.py:graph", "import_failed", "Importing wf_raises.py raised ZeroDivisionError"),
        ("wf_raises:graph", "import_failed", "Importing wf_raises raised ZeroDivisionError"),
        ("wf_exits.py:graph", "import_failed", "raised SystemExit: 4"),
        ("wf_lacks:graph", "import_failed", "raised ModuleNotFoundError: No module named 'wf_missing'"),
        ("json.py:graph", "usage_error", "imported as 'json', which is another module's name: rename the file"),
    ],
)
def test_what_is_no_graph_is_said_to_be_none(folder: Path, target: str, code: str, reason: str) -> None:
    write(folder / "wf_x.py")
    write(folder / "wf_empty.py", "")
    write(folder / "wf_raises.py", "1 / 0")
    write(folder / "wf_exits.py", "import sys; sys.exit(4)")
    write(folder / "wf_lacks.py", "import wf_missing")
    write(folder / "json.py")
    with pytest.raises(StepwellError) as caught:
        load_graph(target)
    assert caught.value.code == code
    assert reason in str(caught.value)


def test_a_module_that_cannot_be_imported_is_one_line_and_exit_2(call: Call, folder: Path) -> None:
    write(folder / "wf_raises.py", "raise ValueError('two\\nlines')")
    result = call("run", "wf_raises:graph", "--thread", "t", status=2)
    assert result.stderr == "error[import_failed]: Importing wf_raises raised ValueError: two lines.\n"
