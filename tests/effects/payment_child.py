"""Processes that pay: graphs whose nodes charge at a payment server, driven to their end by whoever is alive.

`serve` runs jobs, see `tests.e2e.forked`. A job may die at any crash point: one of the engine's, or one of the moments
of a call that only the node's own code can name, before it calls and after it has got its answer.
"""

import asyncio
import operator
import os
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from stepwell import (
    START,
    Command,
    EffectInDoubtError,
    EmptyInputError,
    LeaseLostError,
    RetryPolicy,
    Send,
    SqliteSaver,
    StateGraph,
    ThreadBusyError,
    interrupt,
    points,
)
from stepwell.runtime import ledger
from stepwell.testing import arm_from_environment, record_points
from stepwell.testing.payments import Charge, Payments
from tests.e2e.forked import serve
from tests.effects.tills import ANSWERED, CALLING, EffectTill, Till

CONFIG = {"configurable": {"thread_id": "t"}}
INPUT: dict[str, list[str]] = {"log": []}
LOST = 3
"""How a process exits that was told to have lost its thread to another."""

SHAPES = {
    "single": ["order"],
    "pair": ["order", "shipping"],
    "loop": ["lap 0", "lap 1", "lap 2"],
    "sends": ["part 0", "part 1", "part 2"],
    "interrupts": ["order"],
    "retries": ["order"],
}
"""Each shape of graph, and what it pays for."""


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    reference: str


class Job(NamedTuple):
    """What one process is to do: drive this graph to its end, and die on the way if it comes by.

    `policy` is that of the effect which pays, "" where a plain node does. `forks`: when it is finished, it is replayed
    from before it paid.
    """

    shape: str
    policy: str = ""
    durability: str = "sync"
    api: str = "sync"
    crash: str = ""
    forks: bool = False
    timeout_seconds: float = 10.0
    folder: str = ""
    url: str = ""


class Nodes:
    """The paying node of each shape: what it asks, pays and how it fails, written once for sync and async nodes."""

    def __init__(self, till: Till, job: Job) -> None:
        self._till, self._job = till, job
        self._failures = Path(job.folder) / "failures.txt"

    def paying(self) -> Any:
        """Return the node."""

        def node(state: Log) -> Any:
            self._ask("before")
            receipts = [self._till.pay(reference) for reference in self._references(state)]
            return self._leave(receipts)

        async def anode(state: Log) -> Any:
            self._ask("before")
            receipts = [await self._till.apay(reference) for reference in self._references(state)]
            return self._leave(receipts)

        return node if self._job.api == "sync" else anode

    def _references(self, state: Log) -> list[str]:
        if self._job.shape == "loop":
            return [f"lap {len(state['log'])}"]
        return [state["reference"]] if self._job.shape == "sends" else SHAPES[self._job.shape]

    def _ask(self, when: str) -> None:
        if self._job.shape == "interrupts":
            assert interrupt(when) == "yes"

    def _leave(self, receipts: list[Charge]) -> dict[str, list[str]]:
        self._ask("after")
        if self._job.shape == "retries":
            self._fail_twice()
        return {"log": [f"paid {receipt['amount']} for {receipt['reference']}" for receipt in receipts]}

    def _fail_twice(self) -> None:
        with self._failures.open("a+") as file:
            file.seek(0)
            if len(file.readlines()) < 2:
                file.write("failed\n")
                file.flush()
                raise ConnectionError("the receipt could not be printed")


def build(job: Job, nodes: Nodes) -> StateGraph[Any, Any, Any, Any]:
    """Return the graph of this job: it pays, and then ships."""
    policy = RetryPolicy(initial_interval=0, jitter=False, max_attempts=3)
    graph = StateGraph(Log).add_node("pay", nodes.paying(), retry_policy=policy)
    graph.add_node("ship", lambda state: {"log": ["shipped"]})
    if job.shape == "sends":
        sends = [Send("pay", {"reference": reference}) for reference in SHAPES["sends"]]
        graph.add_conditional_edges(START, lambda state: sends, ["pay"]).add_edge("pay", "ship")
    elif job.shape == "loop":
        more = len(SHAPES["loop"])
        graph.add_edge(START, "pay")
        graph.add_conditional_edges("pay", lambda state: "pay" if len(state["log"]) < more else "ship", ["pay", "ship"])
    else:
        graph.add_edge(START, "pay").add_edge("pay", "ship")
    return graph


def till_of(job: Job) -> Till:
    """Return the till at which this job pays."""
    client = Payments(job.url, timeout_seconds=job.timeout_seconds)
    return EffectTill(client, job.folder, job.policy) if job.policy else Till(client, job.folder)


def open_graph(job: Job, saver: SqliteSaver, till: Till) -> Any:
    """Return the graph of this job on the threads of its folder."""
    return build(job, Nodes(till, job)).compile(checkpointer=saver, name=job.shape)


def open_saver(folder: str) -> SqliteSaver:
    """Open the folder's threads. Against SIGKILL nothing needs to be synced to the disk: the kernel outlives us."""
    return SqliteSaver(Path(folder) / "threads.db", synchronous="normal")


def work(job: Job) -> None:
    """Drive the thread to its end, wherever it stands, as a user would who knows nothing of crashes."""
    os.environ["STEPWELL_CRASH_AT"] = job.crash
    with open_saver(job.folder) as saver, record_points() as passed:
        arm_from_environment()
        till = till_of(job)
        graph = open_graph(job, saver, till)
        given, config = None, CONFIG
        while config is not None:
            given, config = go_on(graph, given, config, job, till)
    (Path(job.folder) / "passed.txt").write_text("\n".join(passed))


def places_passed(job: Job) -> list[str]:
    """Return the crash points that the last process passed which was not to die at one, in order."""
    return (Path(job.folder) / "passed.txt").read_text().split()


def go_on(graph: Any, given: Any, config: Any, job: Job, till: Till) -> tuple[Any, Any]:
    """Run one call; return what to call with next, without a config where all is done."""
    try:
        call(graph, given, config, job)
    except EmptyInputError:
        return INPUT, CONFIG
    except ThreadBusyError as busy:
        threading.Event().wait(busy.fields()["expires_in"])
        return None, CONFIG
    except LeaseLostError:
        os._exit(LOST)
    except EffectInDoubtError as doubt:
        till.note_doubt(doubt.fields()["key"])
        resolve(graph, doubt.fields()["key"], till)
        return None, CONFIG
    except (TimeoutError, ConnectionError):
        return None, CONFIG
    state = graph.get_state(CONFIG)
    if state.next:
        return Command(resume={question.id: "yes" for question in state.interrupts}), CONFIG
    return None, before_it_paid(graph) if job.forks and state.lineage == 0 else None


def resolve(graph: Any, key: str, till: Till) -> None:
    """Do what an operator does: look into the server's books, and say what they say."""
    reference = next(entry.inputs["reference"] for entry in graph.get_journal(CONFIG) if entry.key == key)
    if found := till.client.find(reference=reference):
        graph.resolve_effect(CONFIG, key, receipt=found[0], by="the operator", reason="it is in the books")
    else:
        graph.resolve_effect(CONFIG, key, failed=True, by="the operator", reason="it is not in the books")


def before_it_paid(graph: Any) -> Any:
    """Return the config of the first checkpoint that leads to a payment."""
    return [snapshot.config for snapshot in graph.get_state_history(CONFIG) if "pay" in snapshot.next][-1]


def call(graph: Any, given: Any, config: Any, job: Job) -> None:
    if job.api == "sync":
        graph.invoke(given, config, durability=job.durability)
    else:
        asyncio.run(graph.ainvoke(given, config, durability=job.durability))


def load_everything() -> None:
    """Import now what each process would import. Leases are short, for those who wait for one to expire."""
    ledger.LEASE_SECONDS = 0.5  # before it is imported by name
    points.ALL = (*points.ALL, CALLING, ANSWERED)
    with SqliteSaver(":memory:") as saver:
        graph = StateGraph(Log).add_node("a", lambda state: {"log": []}).add_edge(START, "a")
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke(INPUT, CONFIG)
        asyncio.run(compiled.ainvoke(None, CONFIG))
    "loopback".encode("idna")


if __name__ == "__main__":
    assert sys.argv[1:] == ["serve"]
    load_everything()
    serve(lambda job: work(Job(**job)))
