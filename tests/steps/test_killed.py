"""A workflow of steps, effects, questions and signals whose processes are killed with SIGKILL ends as it would have."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.forked import Processes
from tests.steps.killed_child import WORKFLOW, Job, OnDisk, open_saver
from tests.steps.nodes import CONFIG
from tests.steps.workflows import Code, expected, recorded

PLACES = [
    "step.recorded:4",
    "transaction.written:3",
    "transaction.durable:9",
    "effect.receipt_durable:2",
    "run.ended:1",
]


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    made = Processes("tests.steps.killed_child")
    yield made
    made.close()


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("place", PLACES)
def test_a_workflow_whose_process_is_killed_ends_as_it_would_have(
    place: str, durability: str, processes: Processes, tmp_path: Path
) -> None:
    job = Job(str(tmp_path), durability, "async" if PLACES.index(place) % 2 else "sync")
    status = processes.run(job._replace(crash=place))
    assert status in (0, -signal.SIGKILL)  # 0: the mode does not come by there
    with open_saver(job.folder) as saver:
        epoch, known = recorded(saver, "t")
    assert processes.run(job) == 0
    world = OnDisk(job.folder).lines()
    again = {step for kind, *rest in world if kind == "begins" for when, step in [rest] if int(when) > epoch} & known
    assert again == set()
    paid = {tuple(rest) for kind, *rest in world if kind == "pays"}
    assert sorted(path for _, path in paid) == ["n0.1", "n1.2"]  # each under one key
    with open_saver(job.folder) as saver:
        graph = Code(WORKFLOW, OnDisk(job.folder)).graph(saver)
        assert graph.get_state(CONFIG).values["log"] == expected(WORKFLOW)
        assert list(saver.store.verify()) == []
