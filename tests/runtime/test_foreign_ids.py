"""INV-14: whoever names another thread's rows in a verb of his own thread gets and changes nothing of them.

Who may name which thread is for whoever calls to decide: an id is no permission.
"""

from typing import Any

import pytest

from stepwell import SqliteSaver, UnknownCheckpointError, UnknownRunError
from stepwell.errors import StepwellError
from tests.runtime.graphs import letters, thread


def everything(saver: SqliteSaver, graph: Any, name: str) -> tuple[Any, ...]:
    return [*graph.get_state_history(thread(name))], [*saver.runs(name)], graph.get_state(thread(name))


def test_R4_R5_no_verb_reaches_another_thread_by_the_ids_of_its_rows(saver: SqliteSaver) -> None:
    """Two reports of other projects: reads by tenant, but writes, resumes and cancels by bare ids."""
    graph = letters("abc").compile(checkpointer=saver)
    for name in ("mine", "theirs"):
        graph.invoke({}, thread(name, run_id=f"run of {name}"), interrupt_before=["c"])
    before = everything(saver, graph, "theirs")
    foreign = graph.get_state(thread("theirs")).config["configurable"]["checkpoint_id"]
    there = {"configurable": {"thread_id": "mine", "checkpoint_id": foreign}}
    assert saver.get_tuple(there) is None
    for refused in (
        lambda: graph.invoke(None, there),
        lambda: graph.update_state(there, {"log": ["x"]}),
        lambda: graph.fork(there),
        lambda: saver.read_raw(there),
    ):
        with pytest.raises(UnknownCheckpointError):
            refused()
    with pytest.raises(UnknownRunError):
        saver.runs("mine", before="run of theirs")
    with pytest.raises(StepwellError):
        graph.invoke({}, thread("mine", run_id="run of theirs"))
    assert everything(saver, graph, "theirs") == before
    saver.delete_thread("mine")
    assert everything(saver, graph, "theirs") == before
