"""INV-10: `verify` finds an effect whose row is gone: nobody would know that it has happened."""

import contextlib
from pathlib import Path
from typing import Any

import apsw
import pytest

from stepwell import SqliteSaver
from tests.effects.acting import Outside, one, rows
from tests.effects.test_life import charging
from tests.runtime.graphs import thread


@pytest.mark.parametrize("loss", [None, OSError("lost")])
def test_a_missing_row_is_found_by_the_intent_that_names_its_key(tmp_path: Path, loss: OSError | None) -> None:
    path, outside = tmp_path / "threads.db", Outside()
    outside.losses = [loss] if loss is not None else []
    with SqliteSaver(path) as saver:
        graph = one(lambda state: {"log": [charging(outside)(5)]}, saver)
        with contextlib.suppress(OSError):
            graph.invoke({}, thread())
        key = rows(saver)[0].key
        assert list(saver.store.verify()) == []
        with contextlib.closing(apsw.Connection(str(path))) as connection:
            connection.execute("delete from effects")
        [fault] = saver.store.verify()
        assert fault.startswith(f"effects row of thread 't' at {key}: it is missing, and record ")


@pytest.mark.parametrize("options", [{"key": "k", "scope": "global"}, {"key": "k"}, {}])
def test_rows_that_stand_under_another_thread_are_not_missed(tmp_path: Path, options: dict[str, Any]) -> None:
    """Of the scope "global" a key has one row; it is whose thread wrote last."""
    outside = Outside()
    with SqliteSaver(tmp_path / "threads.db") as saver:
        graph = one(lambda state: {"log": [charging(outside, **options)(5)]}, saver)
        graph.invoke({}, thread())
        saver.copy_thread("t", "copy")
        saver.delete_thread("t")
        graph.invoke({}, thread("other"))
        assert list(saver.store.verify()) == []
