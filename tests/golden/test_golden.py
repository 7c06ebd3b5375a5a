"""Files that released formats have written are read, verified, gone on with and migrated by every later release.

A release that changes the format adds a folder, made with its `making.py`; nothing here is ever made anew.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from stepwell import Command, SqliteSaver
from stepwell.stores.sqlite.connection import schema_at
from tests.golden.making import config, graph_on, kinds, make, shown

FOLDERS = sorted(Path(__file__).parent.glob("format-*"))


@pytest.fixture(params=FOLDERS, ids=lambda folder: str(folder.name))
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def path(folder: Path, tmp_path: Path) -> Path:
    """Return a copy of a golden file, which may be written."""
    return Path(shutil.copy(folder / "threads.db", tmp_path / "threads.db"))


def test_a_golden_file_verifies_and_reads_as_it_did(folder: Path, path: Path) -> None:
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    with SqliteSaver(path) as saver:
        assert list(saver.store.verify()) == []
        graph = graph_on(saver)
        assert {name: shown(graph, name) for name in expected} == expected
    assert schema_at(str(path)).pending == ()


def test_a_golden_thread_goes_on_where_it_stands(path: Path) -> None:
    with SqliteSaver(path) as saver:
        graph = graph_on(saver)
        for name in ("waiting", "forked"):
            graph.signal(config(name), "go", name)
            assert graph.invoke(None, config(name))["__interrupt__"][0].value == "go on?"
        for name in ("waiting", "forked", "asked"):
            with pytest.raises(ValueError, match="broken"):
                graph.invoke(Command(resume="yes"), config(name))
        for name in ("waiting", "forked", "asked", "failed"):
            graph.update_state(config(name), {"log": ["mended"]}, as_node="ask")
            log = graph.invoke(None, config(name))["log"]
            assert log[:2] == ["begin", "paid X"]
            assert log[-2:] == ["mended", "done"]
        assert graph.invoke({"log": ["again"]}, config("finished"))["log"][-1] == "paid X"
        assert list(saver.store.verify()) == []


def test_the_newest_golden_file_holds_every_kind_of_row_that_is_written_today(tmp_path: Path) -> None:
    """Where it does not, the format has grown: add a folder for it."""
    for left in ("made.db", "made.db-wal", "threads.db"):
        (tmp_path / left).write_text("half made by an earlier call")
    make(tmp_path)
    assert kinds(FOLDERS[-1] / "threads.db") == kinds(tmp_path / "threads.db")
    newest = json.loads((FOLDERS[-1] / "expected.json").read_text())
    assert json.loads((tmp_path / "expected.json").read_text()) == newest
