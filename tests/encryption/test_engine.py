"""What the engine promises holds on an encrypted store: generated graphs and lives, with crashes, against the model."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings

from stepwell import START, Command, Encryption, InMemorySaver, StateGraph, points
from stepwell.stores.encrypted.store import EncryptedStore
from stepwell.stores.sqlite import SqliteStore
from stepwell.testing.graphs import CORPUS, graph_scripts
from tests.pure.model.scripts import Script, Step, scripts
from tests.pure.model.seen import Seen
from tests.pure.test_model_engine import CONVERSATION, modelled, played
from tests.runtime.graphs import Log, ask, note, thread

pytestmark = pytest.mark.filterwarnings("ignore::stepwell.JoinNotReleasedWarning")

KEY = Encryption.new_key()


def encrypted(path: Any, *, clock: Any) -> EncryptedStore:
    return EncryptedStore(SqliteStore(path, clock=clock), Encryption({"k": KEY}), clock)


@cache
def uneventful(name: str) -> list[Seen]:
    return modelled(Script(CORPUS[name], tuple(Step(op) for op in CONVERSATION)))


@pytest.mark.parametrize("name", list(CORPUS)[::3])
def test_a_crash_at_any_point_changes_nothing_with_encryption(name: str) -> None:
    """INV-1, INV-4, INV-5, INV-8."""
    steps = [
        Step(op, ((points.ALL[i * 3 % len(points.ALL)], 1), (points.ALL[-1 - i], 2)), same_call=i % 2 > 0)
        for i, op in enumerate(CONVERSATION)
    ]
    assert played(Script(CORPUS[name], tuple(steps)), opened=encrypted) == uneventful(name)


@settings(max_examples=10)
@given(scripts(graph_scripts(), breaks=False, most=4))
def test_resumed_is_uninterrupted_with_encryption(script: Script) -> None:
    """INV-4 to INV-9, on a file that each life of the process opens anew."""
    with TemporaryDirectory() as folder:
        assert played(script, Path(folder) / "threads.db", opened=encrypted) == modelled(script)


def test_what_a_sibling_came_to_goes_along_to_where_an_older_question_is_answered_with_encryption() -> None:
    """INV-4, INV-8: the outcome is written anew, in the words of another row, and read before it is."""
    builder = StateGraph(Log)
    builder.add_node("ask", ask("ask"))
    builder.add_node("beside", note("beside"))
    builder.add_edge(START, "ask")
    builder.add_edge(START, "beside")
    with InMemorySaver(encryption=Encryption({"k": KEY})) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({}, thread())
        asked = graph.get_state(thread()).config
        assert graph.invoke(Command(resume="yes"), thread()) == {"log": ["ask='yes'", "beside"]}
        assert graph.invoke(Command(resume="no"), asked) == {"log": ["ask='no'", "beside"]}
        assert saver.verify().is_sound
