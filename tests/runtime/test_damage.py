"""A damaged row is named, wherever it is met; nothing is skipped and nothing half-loaded."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from stepwell import CorruptRecordError, SqliteSaver
from tests.runtime.graphs import Flaky, ask, chain, fan, letters, note, thread


def spoil(path: Path, statement: str) -> None:
    """Change the database behind the engine's back."""
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    assert connection.changes() >= 1
    connection.close()


FLIPS = {
    "a body": "update checkpoints set body = cast(substr(body, 1, length(body) - 1) as blob) where step = 1",
    "a step": "update checkpoints set step = 7 where step = 1",
    "a parent": "update checkpoints set parent_seq = 1 where step = 1",
    "metadata": """update checkpoints set metadata = '{"user": "eve"}' where step = 1""",
    "a lost tail": "delete from checkpoints where step = 1",
    "the head": "update threads set head_seq = head_seq - 1",
    "the lease": "update threads set epoch = epoch + 1",
}


@pytest.mark.parametrize("damage", FLIPS)
def test_a_damaged_checkpoint_or_thread_is_refused_by_every_call(damage: str, tmp_path: Path) -> None:
    """INV-10."""
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        letters("ab").compile(checkpointer=saver, name="g", interrupt_before=["b"]).invoke({}, thread())
    spoil(path, FLIPS[damage])
    with SqliteSaver(path) as saver:
        graph: Any = letters("ab").compile(checkpointer=saver, name="g")
        with pytest.raises(CorruptRecordError):
            graph.get_state(thread())
        with pytest.raises(CorruptRecordError):
            graph.invoke(None, thread())
        with pytest.raises(CorruptRecordError):
            graph.update_state(thread(), {"log": ["x"]})
        assert list(saver.store.verify())


@pytest.mark.parametrize(
    "statement", ["update records set body = cast(body || x'00' as blob)", "delete from records where ordinal = 0"]
)
def test_a_damaged_outcome_is_refused_and_its_task_is_not_just_run_again(statement: str, tmp_path: Path) -> None:
    """INV-10 and INV-4: a finished task whose record is damaged must not look like one that never ran."""
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        nodes = (("a", note("a")), ("ask", ask("ask")), ("flaky", Flaky("flaky")))
        with pytest.raises(ValueError, match="broken"):
            fan(*nodes).compile(checkpointer=saver, name="g").invoke({}, thread())
    spoil(path, statement)
    with SqliteSaver(path) as saver:
        graph = fan(*nodes).compile(checkpointer=saver, name="g")
        with pytest.raises(CorruptRecordError):
            graph.invoke(None, thread())
        with pytest.raises(CorruptRecordError):
            graph.get_state(thread())


def test_other_threads_are_not_touched_by_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver(path) as saver:
        for name in ("good", "bad"):
            chain(("a", note("a"))).compile(checkpointer=saver, name="g").invoke({}, thread(name))
    spoil(path, "update checkpoints set body = x'00' where thread_id = 'bad'")
    with SqliteSaver(path) as saver:
        graph = chain(("a", note("a"))).compile(checkpointer=saver, name="g")
        assert graph.invoke({}, thread("good")) == {"log": ["a", "a"]}
        with pytest.raises(CorruptRecordError, match="bad"):
            graph.invoke({}, thread("bad"))
