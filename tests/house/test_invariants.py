"""The page of invariants and the tests agree, and what no other test shows end to end: INV-9 and INV-11."""

import re
from pathlib import Path
from typing import Any

import pytest

from stepwell import Command, SqliteSaver
from tests.runtime.graphs import Flaky, ask, chain, letters, note, thread

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "invariants.md"
HEADING = re.compile(r"^## (INV-\d+) ", re.M)
PROOF = re.compile(r"`((?:tests|src)/[\w/]+\.py)`")


def sections() -> dict[str, str]:
    """Return the text of each invariant by its id."""
    parts = HEADING.split(PAGE.read_text())[1:]
    return {name: text.split("\n## ")[0] for name, text in zip(parts[::2], parts[1::2], strict=True)}


def names(text: str) -> set[str]:
    """Return the invariants a text names, those inside ranges ("INV-4 to INV-9") included."""
    found = {f"INV-{number}" for number in re.findall(r"INV[-_](\d+)", text)}
    for first, last in re.findall(r"INV-(\d+) to INV-(\d+)", text):
        found |= {f"INV-{number}" for number in range(int(first), int(last) + 1)}
    return found


def test_every_invariant_stands_on_the_page() -> None:
    assert list(sections()) == [f"INV-{number}" for number in range(1, 15)]


@pytest.mark.parametrize("name", sections())
def test_each_proof_the_page_gives_names_its_invariant(name: str) -> None:
    proofs = PROOF.findall(sections()[name])
    assert proofs
    assert [file for file in proofs if name not in names((ROOT / file).read_text())] == []


# -- history only grows: INV-9 -----------------------------------------------------------------------------------------


def test_whatever_is_done_to_a_thread_its_history_stays(saver: SqliteSaver) -> None:
    """INV-9: a failure, a retry, an answer, an edit, a fork, a replay and a new input only add."""
    graph = chain(("a", note("a")), ("b", Flaky("b")), ("ask", ask("ask"))).compile(checkpointer=saver)
    seen: list[Any] = []

    def history_stays() -> None:
        now = [(snapshot.seq, snapshot.digest) for snapshot in graph.get_state_history(thread())][::-1]
        assert now[: len(seen)] == seen
        assert now == sorted(now, key=lambda entry: entry[0])
        seen[:] = now

    with pytest.raises(ValueError, match="broken"):
        graph.invoke({}, thread())
    history_stays()
    graph.retry(thread())
    history_stays()
    graph.invoke(Command(resume="yes"), thread())
    history_stays()
    graph.update_state(thread(), {"log": ["edited"]})
    history_stays()
    oldest = list(graph.get_state_history(thread()))[-2].config
    graph.fork(oldest)
    history_stays()
    graph.invoke(None, oldest)
    history_stays()
    graph.invoke({"log": ["again"]}, thread(), on_pending="discard")
    history_stays()
    assert len(seen) > 10


# -- what is shown is on disk: INV-11 ----------------------------------------------------------------------------------


def test_a_stream_shows_nothing_that_is_not_on_disk(tmp_path: Path) -> None:
    """INV-11: another process that looks when a chunk arrives finds that state already."""
    with SqliteSaver(tmp_path / "threads.db") as saver, SqliteSaver(tmp_path / "threads.db") as other:
        graph, looking = (letters("abc").compile(checkpointer=each) for each in (saver, other))
        chunks = []
        for mode, chunk in graph.stream({"log": []}, thread(), stream_mode=["values", "updates", "tasks"]):
            on_disk = looking.get_state(thread()).values.get("log", [])
            if mode == "values":
                shown = chunk.get("log", [])
            elif mode == "updates":
                shown = [name for update in chunk.values() for name in update["log"]]
            else:
                shown = chunk.get("result", {}).get("log", [])
            assert set(shown) <= set(on_disk)
            chunks.append(mode)
        assert {mode: chunks.count(mode) for mode in set(chunks)} == {"values": 4, "updates": 3, "tasks": 6}


def test_a_result_that_is_returned_is_on_disk(tmp_path: Path, any_durability: str) -> None:
    """INV-11, in every mode: what a caller was told survives."""
    with SqliteSaver(tmp_path / "threads.db") as saver, SqliteSaver(tmp_path / "threads.db") as other:
        graph = letters("abc").compile(checkpointer=saver)
        result = graph.invoke({}, thread(), durability=any_durability)
        assert letters("abc").compile(checkpointer=other).get_state(thread()).values == result
