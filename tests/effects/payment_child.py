"""Processes that pay: graphs whose nodes charge at a payment server, driven to their end by whoever is alive.

`serve` runs jobs, see `tests.e2e.forked`. A job may die at a crash point of the engine (`crash`), or at one of the
moments of the call that only the node's own code can name (`dies`): before it calls, and after it has got its answer.
"""

import asyncio
import operator
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from stepwell import (
    START,
    Command,
    EmptyInputError,
    LeaseLostError,
    RetryPolicy,
    Send,
    SqliteSaver,
    StateGraph,
    ThreadBusyError,
    interrupt,
)
from stepwell.runtime import ledger
from stepwell.testing import arm_from_environment
from stepwell.testing.payments import Charge, Payments
from tests.e2e.forked import serve

CONFIG = {"configurable": {"thread_id": "t"}}
INPUT: dict[str, list[str]] = {"log": []}
AMOUNT = 5

LOST = 3
"""How a process exits that was told to have lost its thread to another."""

CALLING, ANSWERED = "calling", "answered"
"""The moments at which `dies` may strike, as "calling:2"."""

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
    """What one process is to do: drive this graph to its end, and die on the way if it comes by."""

    shape: str
    durability: str = "sync"
    api: str = "sync"
    crash: str = ""
    dies: str = ""
    timeout_seconds: float = 10.0
    folder: str = ""
    url: str = ""


class Till:
    """How nodes pay: plainly, without any record that they have."""

    def __init__(self, job: Job) -> None:
        self.client = Payments(job.url, timeout_seconds=job.timeout_seconds)
        self._dies = job.dies
        self._reached: Counter[str] = Counter()

    def pay(self, reference: str) -> Charge:
        return self.charge(reference)

    async def apay(self, reference: str) -> Charge:
        return await self.acharge(reference)

    def charge(self, reference: str, key: str | None = None) -> Charge:
        self._reach(CALLING)
        charge = self.client.charge(AMOUNT, reference=reference, idempotency_key=key)
        self._reach(ANSWERED)
        return charge

    async def acharge(self, reference: str, key: str | None = None) -> Charge:
        self._reach(CALLING)
        charge = await self.client.acharge(AMOUNT, reference=reference, idempotency_key=key)
        self._reach(ANSWERED)
        return charge

    def _reach(self, moment: str) -> None:
        self._reached[moment] += 1
        if self._dies == f"{moment}:{self._reached[moment]}":
            os.kill(os.getpid(), signal.SIGKILL)


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


def open_saver(folder: str) -> SqliteSaver:
    """Open the folder's threads. Against SIGKILL nothing needs to be synced to the disk: the kernel outlives us."""
    return SqliteSaver(Path(folder) / "threads.db", synchronous="normal")


def work(job: Job) -> None:
    """Drive the thread to its end, wherever it stands, as a user would who knows nothing of crashes."""
    os.environ["STEPWELL_CRASH_AT"] = job.crash
    arm_from_environment()
    with open_saver(job.folder) as saver:
        graph = build(job, Nodes(Till(job), job)).compile(checkpointer=saver, name=job.shape)
        given: Any = None
        while True:
            try:
                call(graph, given, job)
            except EmptyInputError:
                given = INPUT
                continue
            except ThreadBusyError as busy:
                threading.Event().wait(busy.fields()["expires_in"])
                continue
            except LeaseLostError:
                os._exit(LOST)
            state = graph.get_state(CONFIG)
            if not state.next:
                return
            given = Command(resume={question.id: "yes" for question in state.interrupts})


def call(graph: Any, given: Any, job: Job) -> None:
    if job.api == "sync":
        graph.invoke(given, CONFIG, durability=job.durability)
    else:
        asyncio.run(graph.ainvoke(given, CONFIG, durability=job.durability))


def load_everything() -> None:
    """Import now what each process would import. Leases are short, for those who wait for one to expire."""
    ledger.LEASE_SECONDS = 0.5  # before it is imported by name
    asyncio.run(asyncio.sleep(0))
    with SqliteSaver(":memory:") as saver:
        graph = StateGraph(Log).add_node("a", lambda state: {"log": []}).add_edge(START, "a")
        graph.compile(checkpointer=saver).get_state(CONFIG)
    graph.compile().invoke(INPUT)


if __name__ == "__main__":
    assert sys.argv[1:] == ["serve"]
    load_everything()
    serve(lambda job: work(Job(**job)))
