"""The kit behind `make compat`: what it cuts out of a module of tests, and whether its lists say what they should."""

import json
import re
from pathlib import Path

import pytest

from tests.compat import listing
from tests.compat.missing import Missing, NameNotProvidedError
from tests.compat.slicing import slice_tests

ROOT = Path(__file__).parents[2]
MODULE = """
import operator
from typing import TYPE_CHECKING
import unused
from thatpackage import untouched
from langgraph.types import Command, Send as Packet
import pytest

pytestmark = pytest.mark.anyio

SIZE = 3


def helper(value: "Packet") -> int:
    return SIZE + operator.add(1, 2)


@pytest.fixture
def asked() -> int:
    return helper(1)


@pytest.fixture
def not_asked() -> int:
    return 0


@pytest.mark.parametrize("case", [1, 2])
def test_chosen(asked, case) -> None:
    from langgraph.errors import InvalidUpdateError

    assert asked


def test_other() -> None:
    assert Command()
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "test_module.py"
    path.write_text(MODULE)
    return path


def test_a_slice_holds_what_the_chosen_tests_reach_and_nothing_else(module: Path) -> None:
    source = slice_tests(module, ["test_chosen"]).source
    for kept in (
        "pytestmark",
        "SIZE = 3",
        "def helper",
        "def asked",
        "parametrize",
        "def test_chosen",
        "import operator",
    ):
        assert kept in source
    for left_out in ("unused", "untouched", "not_asked", "test_other", "Command", "TYPE_CHECKING"):
        assert left_out not in source


def test_a_name_that_is_not_there_fails_only_who_uses_it(module: Path) -> None:
    source = slice_tests(module, ["test_chosen"]).source
    assert "    from langgraph.types import Send as Packet\nexcept (ImportError, AttributeError):\n" in source
    with pytest.raises(NameNotProvidedError, match=r"langgraph\.types\.Send"):
        Missing("langgraph.types.Send")("node", 1)


def test_a_slice_says_what_it_imports(module: Path) -> None:
    imports = slice_tests(module, ["test_chosen"]).imports
    assert imports == {
        ("operator", None),
        ("pytest", None),
        ("langgraph.types", "Send"),
        ("langgraph.errors", "InvalidUpdateError"),
    }


def test_a_function_that_is_not_in_the_module_is_an_error(module: Path) -> None:
    with pytest.raises(KeyError, match="test_gone"):
        slice_tests(module, ["test_gone"])


@pytest.mark.parametrize("path", [listing.DEPARTURES, listing.LATER], ids=lambda path: path.name)
def test_every_function_that_may_fail_is_listed_with_its_reason(path: Path) -> None:
    known = listing.read(listing.LISTED)
    exceptions = listing.read(path)
    assert [name for name, reason in exceptions.items() if not reason] == []
    assert exceptions.keys() - known.keys() == set()


def test_the_readme_counts_as_the_last_whole_run_did() -> None:
    counts = json.loads(listing.COUNTS.read_text())
    assert counts["functions"] == len(listing.read(listing.LISTED))
    assert counts["depart"] == len(listing.read(listing.DEPARTURES))
    assert counts["later"] == len(listing.read(listing.LATER))
    assert counts["functions"] == counts["pass"] + counts["depart"] + counts["later"]
    sentence = "{functions} functions of LangGraph's own tests: {pass} pass, {depart} fail on purpose and {later} need"
    assert sentence.format(**counts) in " ".join((ROOT / "README.md").read_text().split())


def test_no_function_both_departs_and_waits() -> None:
    assert listing.read(listing.DEPARTURES).keys() & listing.read(listing.LATER).keys() == set()


def test_a_function_listed_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("test_a.py::test_one  # why\n\n# nothing\ntest_a.py::test_one\n")
    with pytest.raises(ValueError, match=re.escape("list.txt:4")):
        listing.read(path)
