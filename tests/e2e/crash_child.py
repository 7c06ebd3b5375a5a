"""Processes that die: graphs with side effects on disk, driven to their end by whoever is alive.

`serve` runs jobs, see `tests.e2e.forked`. `hold` drives a run up to a node that waits for a line on stdin.
"""

import asyncio
import importlib
import operator
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from stepwell import (
    START,
    Command,
    EmptyInputError,
    PostgresSaver,
    RetryPolicy,
    Runtime,
    Send,
    SqliteSaver,
    StateGraph,
    StepwellError,
    interrupt,
    points,
)
from stepwell.testing import arm_from_environment
from tests.e2e.forked import serve

CONFIG = {"configurable": {"thread_id": "t"}}
INPUT = {"log": ["in"]}
SERVER = "server.txt"
NOWHERE = "nowhere"
"""Of a job that is to note the points it passes, and to die at none."""


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


class Job(NamedTuple):
    """What one process is to do: drive this graph to its end, and die at `crash` if it comes by."""

    graph: str
    folder: str
    durability: str = "sync"
    crash: str = ""
    api: str = "sync"


class World:
    """What nodes do outside the graph: lines in a file, which outlive the process once they are written."""

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / "world.txt"

    def note(self, *words: object) -> None:
        with self.path.open("a") as file:
            file.write(" ".join(map(str, words)) + "\n")

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.path.read_text().splitlines()] if self.path.exists() else []


class Nodes:
    """Nodes with a side effect each: the world sees when they run and when they are done."""

    def __init__(self, world: World) -> None:
        self.world = world

    def plain(self, name: str) -> Any:
        def node(state: Any, runtime: Runtime[Any]) -> dict[str, list[str]]:
            info = runtime.execution_info
            assert info is not None
            task = info.task_id
            self.world.note("run", name, task, info.node_attempt)
            self.world.note("done", name, task)
            return {"log": [f"{name}:{len(state['log'])}"]}

        return node

    def asking(self, name: str) -> Any:
        inner = self.plain(name)

        def node(state: Any, runtime: Runtime[Any]) -> Any:
            answer = interrupt(name)
            return {"log": [f"{answer}", *inner(state, runtime)["log"]]}

        return node

    def flaky(self, name: str) -> Any:
        inner = self.plain(name)

        def node(state: Any, runtime: Runtime[Any]) -> Any:
            if sum(line[:2] == ["failed", name] for line in self.world.lines()) < 2:
                info = runtime.execution_info
                assert info is not None
                self.world.note("failed", name, info.node_attempt)
                raise ConnectionError("refused")
            return inner(state, runtime)

        return node


def build(name: str, nodes: Nodes) -> StateGraph[Any, Any, Any, Any]:
    """Return the graph of this name."""
    graph = StateGraph(Log)
    if name == "chain":
        graph.add_sequence([(n, nodes.plain(n)) for n in "abc"]).add_edge(START, "a")
    elif name == "fan":
        graph.add_node("a", nodes.plain("a")).add_node("s", nodes.plain("s")).add_node("b", nodes.plain("b"))
        sends = [Send("s", {"log": list(range(i))}) for i in range(3)]
        graph.add_edge(START, "a").add_edge("s", "b").add_conditional_edges("a", lambda state: sends, ["s"])
    elif name == "join":
        for n in ("a", "b", "b2", "join"):
            graph.add_node(n, nodes.plain(n))
        graph.add_edge(START, "a").add_edge(START, "b").add_edge("b", "b2").add_edge(["a", "b2"], "join")
    elif name == "interrupt":
        graph.add_node("a", nodes.plain("a")).add_node("q", nodes.asking("q")).add_node("b", nodes.plain("b"))
        graph.add_edge(START, "a").add_edge(START, "q").add_edge(["a", "q"], "b")
    else:
        policy = RetryPolicy(initial_interval=0, jitter=False, max_attempts=9)
        graph.add_node("a", nodes.plain("a")).add_node("r", nodes.flaky("r"), retry_policy=policy)
        graph.add_node("b", nodes.plain("b")).add_edge(START, "a").add_edge(START, "r").add_edge(["a", "r"], "b")
    return graph


def open_saver(folder: str) -> Any:
    """Open the folder's threads. Against SIGKILL nothing needs to be synced to the disk: the kernel outlives us.

    A folder that names a server keeps them there, in a schema of its own.
    """
    if (named := Path(folder) / SERVER).exists():
        saver = PostgresSaver(named.read_text(), schema=Path(folder).name)
        saver.setup()
        return saver
    return SqliteSaver(Path(folder) / "threads.db", synchronous="normal")


def work(job: Job) -> None:
    """Do what a process of this job is for."""
    if job.crash == NOWHERE:
        points.hook = lambda point: World(job.folder).note("passed", point)
    else:
        os.environ["STEPWELL_CRASH_AT"] = job.crash
        arm_from_environment()
    drive_to_its_end(job)


def drive_to_its_end(job: Job) -> None:
    """Drive the thread to its end, wherever it stands, as a user would who knows nothing of crashes."""
    world = World(job.folder)
    with open_saver(job.folder) as saver:
        graph = build(job.graph, Nodes(world)).compile(checkpointer=saver, name=job.graph, events=True)
        given: Any = None
        while True:
            try:
                take_all(graph, given, job, world)
            except EmptyInputError:
                given = INPUT
                continue
            state = graph.get_state(CONFIG)
            if not state.next:
                return
            given = Command(resume={question.id: "yes" for question in state.interrupts})


def take_all(graph: Any, given: Any, job: Job, world: World) -> None:
    """Run one call, noting each result when the stream hands it out."""
    options = {"stream_mode": "tasks", "durability": job.durability}

    async def consume() -> None:
        async for chunk in graph.astream(given, CONFIG, **options):
            acknowledge(chunk, world)

    if job.api == "async":
        asyncio.run(consume())
        return
    for chunk in graph.stream(given, CONFIG, **options):
        acknowledge(chunk, world)


def acknowledge(chunk: dict[str, Any], world: World) -> None:
    if "result" in chunk and chunk["error"] is None and not chunk["interrupts"]:
        world.note("ack", chunk["name"], chunk["id"])


def load_everything() -> None:
    """Import now what each process would import: one run without a saver, and the modules only a saver needs."""
    nodes = Nodes(World(os.devnull))
    nodes.plain = lambda name: lambda state: {"log": [name]}  # type: ignore[method-assign]
    with SqliteSaver(":memory:") as saver:
        build("chain", nodes).compile(checkpointer=saver).get_state(CONFIG)
    build("chain", nodes).compile().invoke(INPUT)
    for name in ("runtime.async_driver", "stores.sqlite.outcome", "codec.faults"):
        importlib.import_module(f"stepwell.{name}")


def holding(world: World, hold: bool) -> StateGraph[Any, Any, Any, Any]:
    """Return a graph whose second node, if it holds, says so and waits for a line on stdin."""

    def held(state: Log) -> dict[str, list[str]]:
        world.note("run", "held")
        if hold:
            print("reached", flush=True)
            sys.stdin.readline()
        return {"log": ["held by " + ("the child" if hold else "the heir")]}

    nodes = Nodes(world)
    return (
        StateGraph(Log)
        .add_sequence([("a", nodes.plain("a")), ("held", held), ("b", nodes.plain("b"))])
        .add_edge(START, "a")
    )


def hold(folder: str, lease_seconds: float) -> None:
    """Drive the held graph; print each update, then how it ended."""
    import stepwell.runtime.ledger as ledger

    ledger.LEASE_SECONDS = lease_seconds
    with open_saver(folder) as saver:
        graph = holding(World(folder), hold=True).compile(checkpointer=saver, name="held")
        try:
            for chunk in graph.stream(INPUT, CONFIG):
                print(*chunk, flush=True)
        except StepwellError as error:
            print(error.code, flush=True)
        else:
            print("finished", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        load_everything()
        serve(lambda job: work(Job(**job)))
    else:
        hold(sys.argv[2], float(sys.argv[3]))
