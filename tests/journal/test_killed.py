"""Operators whose process is killed, by SIGKILL, while they resolve or undo: what they began is whole or not there."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import points
from tests.e2e.forked import Processes
from tests.journal.operator_child import CONFIG, Job, World, build, open_saver

pytestmark = pytest.mark.crash
KILLED = -signal.SIGKILL


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    running = Processes("tests.journal.operator_child")
    yield running
    running.close()


@pytest.mark.parametrize(
    ("point", "landed"),
    [
        (points.BEGUN, False),
        (points.FENCED, False),
        (points.WRITTEN, False),
        (points.DURABLE, True),
        (points.EFFECT_RESOLVED, True),
    ],
)
def test_INV_1_a_decision_survives_with_its_effect_or_not_at_all(
    processes: Processes, tmp_path: Path, point: str, landed: bool
) -> None:
    folder = str(tmp_path)
    assert processes.run(Job("run", folder)) == 0
    assert processes.run(Job("resolve", folder, f"{point}:1")) == KILLED
    with open_saver(folder) as saver:
        graph = build(folder, saver)
        assert [entry.decided_by for entry in graph.get_journal(CONFIG) if entry.decision] == ["ann"] * landed
        assert list(saver.store.verify()) == []
        if landed:
            assert graph.invoke(None, CONFIG) == {"log": ["room", "flight", "car"]}
    assert len(World(folder).lines()) == 3


@pytest.mark.parametrize(
    "crash",
    [
        *(f"{points.ADMITTED}:1", f"{points.INTENT_DURABLE}:2", f"{points.BODY_RETURNED}:1"),
        *(f"{points.BODY_RETURNED}:3", f"{points.RECEIPT_DURABLE}:2", f"{points.WRITTEN}:3", f"{points.DURABLE}:5"),
        f"{points.ENDED}:1",
    ],
)
def test_INV_7_what_is_undone_is_undone_under_one_key_wherever_it_is_killed(
    processes: Processes, tmp_path: Path, crash: str
) -> None:
    folder = str(tmp_path)
    assert processes.run(Job("run", folder)) == 0
    assert processes.run(Job("resolve", folder)) == 0
    assert processes.run(Job("compensate", folder, crash)) == KILLED
    assert processes.run(Job("compensate", folder)) == 0
    cancelled = [line[1:] for line in World(folder).lines() if line[0] == "cancel"]
    assert list(dict.fromkeys(receipt for receipt, _ in cancelled)) == ["car", "flight", "room"]
    assert len({tuple(line) for line in cancelled}) == 3
    assert len(cancelled) <= 4  # the one that was cut off may be asked for again, under its key
    with open_saver(folder) as saver:
        assert list(saver.store.verify()) == []
        assert build(folder, saver).compensate(CONFIG) == ()
