"""A thread that lives at random: run, killed, answered, edited, forked, pruned, copied, moved, met by others.

After every action all of it is looked at. What is compared does not come from the code under test: what each
checkpoint showed when it was first seen, what a run makes of the state it began with, what the world was asked for.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

from stepwell import (
    END,
    START,
    Command,
    CompiledGraph,
    DeltaChannel,
    Encryption,
    EphemeralValue,
    Overwrite,
    StateGraph,
    StateSnapshot,
    StepwellError,
    UntrackedValue,
    effect,
    interrupt,
    points,
)
from stepwell.errors import CorruptRecordError
from stepwell.runtime.ledger import LEASE_SECONDS
from stepwell.savers.keeping import KeepingSaver
from stepwell.store import Store
from stepwell.stores.encrypted.wrapping import with_encryption
from stepwell.testing import FakeClock, SimulatedCrash

KEYS = {name: Encryption.new_key() for name in ("old", "new")}
IN_A_TRANSACTION = (points.BEGUN, points.FENCED, points.ROWS_DELETED, points.WRITTEN)
Open = Callable[[FakeClock], Store]


def folded(value: list[str], writes: list[list[str]]) -> list[str]:
    return [*value, *(each for write in writes for each in write)]


def joined(left: list[str], right: list[str]) -> list[str]:
    return left + right


class State(TypedDict, total=False):
    """A channel of each kind."""

    plan: dict[str, Any]
    log: Annotated[list[Any], operator.add]
    facts: Annotated[dict[str, Any], operator.or_]
    lines: Annotated[list[str], DeltaChannel(folded, snapshot_frequency=5)]
    rounds: Annotated[list[str], joined]
    answers: Annotated[list[Any], operator.add]
    paper: str
    passing: Annotated[str, EphemeralValue]
    loose: Annotated[str, UntrackedValue]


class World:
    """The other side of the payments: it honours keys, and says so when one is used for two things."""

    def __init__(self) -> None:
        self.charged: dict[str, str] = {}

    def build(self, saver: KeepingSaver) -> CompiledGraph:
        """Return a graph whose second node pays."""

        @effect(name="pay")
        def pay(what: str, idempotency_key: str) -> str:
            assert self.charged.setdefault(idempotency_key, what) == what
            return f"paid {what}"

        def first(state: Any) -> State:
            tag, text = state["plan"]["tag"], state["plan"]["text"]
            kept: State = {"log": [tag], "facts": {tag: text, "last": tag}, "lines": [f"first {tag}"]}
            return {**kept, "paper": text * 2, "passing": tag, "loose": tag}

        def second(state: Any) -> State:
            plan = state["plan"]
            answers = [interrupt(plan["tag"])] if plan["asks"] else []
            paid = [pay(plan["tag"])] if plan["pays"] else []
            return {"log": paid, "lines": [f"second {plan['tag']}"], "rounds": ["!"], "answers": answers}

        def last(state: Any) -> State:
            tag, overwrites = state["plan"]["tag"], state["plan"]["overwrites"]
            return {"log": Overwrite([tag]) if overwrites else [len(state["log"])], "rounds": ["."]}  # type: ignore[typeddict-item]

        builder = StateGraph(State)
        for node in (first, second, last):
            builder.add_node(node.__name__, node)
        builder.add_edge(START, "first")
        builder.add_edge(START, "second")
        builder.add_edge(["first", "second"], "last")
        builder.add_conditional_edges("last", lambda state: "last" if len(state["rounds"]) % 3 else END)
        return builder.compile(checkpointer=saver, name="g")  # type: ignore[no-any-return]


def finished(before: dict[str, Any], plan: dict[str, Any], answers: list[Any]) -> dict[str, Any]:
    """Return what a whole run makes of the values it began with."""
    tag, text = plan["tag"], plan["text"]
    rounds = [*before.get("rounds", []), "!"]
    log = [*before.get("log", []), tag, *([f"paid {tag}"] if plan["pays"] else [])]
    while rounds[-1] == "!" or len(rounds) % 3:
        log = [tag] if plan["overwrites"] else [*log, len(log)]
        rounds.append(".")
    return {
        "log": log,
        "facts": before.get("facts", {}) | {tag: text, "last": tag},
        "lines": [*before.get("lines", []), f"first {tag}", f"second {tag}"],
        "rounds": rounds,
        "answers": before.get("answers", []) + answers,
        "paper": text * 2,
        "plan": plan,
    }


class Shown(TypedDict):
    """What a checkpoint shows and keeps showing."""

    values: dict[str, Any]
    next: tuple[str, ...]
    at: Any
    parent: str


def shown(state: StateSnapshot) -> Shown:
    values = {name: value for name, value in state.values.items() if name not in ("passing", "loose")}
    assert state.metadata is not None
    at = (state.metadata["step"], state.metadata["source"], state.created_at, state.lineage)
    return Shown(values=values, next=state.next, at=at, parent=id_of(state.parent_config))


def id_of(config: Any) -> str:
    return "" if config is None else str(config["configurable"]["checkpoint_id"])


class Life:
    """One thread, and another that must not notice, on one store after the other."""

    def __init__(self, seed: int, opens: list[Open], folder: Path, *, is_encrypted: bool) -> None:
        self.random = random.Random(seed)
        self.opens, self.folder, self.is_encrypted = opens, folder, is_encrypted
        self.world, self.clock, self.number, self.told = World(), FakeClock(), 0, list[str]()
        self.thread_id, self.cut = "t", False
        self.known: dict[str, Shown] = {}
        self.ever: dict[str, Shown] = {}
        self.saver: KeepingSaver | None = None
        self.place = 0
        self.arrive()

    def arrive(self) -> None:
        """Open the store of this place, as a process that begins; in a new place, beside another thread."""
        points.hook = None
        if self.saver is not None:
            self.saver.close()
        self.saver = self.opened()
        self.graph = self.world.build(self.saver)
        if self.saver.get_tuple(self.of("other")) is None:
            self.graph.invoke({"plan": self.plan(asks=False, pays=False)}, self.of("other"))
        self.beside = self.rows("other")

    def opened(self) -> KeepingSaver:
        """Return one more saver on the same database."""
        key = Encryption(KEYS, current=self.random.choice([*KEYS])) if self.is_encrypted else None
        saver = KeepingSaver(with_encryption(self.opens[self.place](self.clock), key))
        saver._clock = self.clock
        return saver

    def of(self, name: str = "") -> dict[str, Any]:
        return {"configurable": {"thread_id": name or self.thread_id}}

    def rows(self, name: str) -> list[Any]:
        assert self.saver is not None
        with self.saver.store.reading() as reader:
            return [row for row in reader.stored(name) if row[0] != "keys"]

    def plan(self, **given: bool) -> dict[str, Any]:
        """Return what one run is to do."""
        self.number += 1
        chances = {"asks": 0.4, "pays": 0.6, "overwrites": 0.2}
        chosen = {name: self.random.random() < chance for name, chance in chances.items()}
        return {"tag": f"#{self.number}", "text": self.random.choice(["x", "y" * 9000])} | chosen | given

    # -- going wrong --------------------------------------------------------------------------------------------------

    def attempt(self, act: Callable[[], object], *, met: bool = True) -> bool:
        """Carry out; at random the process dies on the way, or another one comes between. Tell whether it was done."""
        chance, left = self.random.random(), self.random.randint(1, 30)
        comes = chance > 0.75 and met

        def hook(point: str) -> None:
            nonlocal left
            left -= 1
            if not comes and left <= 0:
                raise SimulatedCrash(point)
            if comes and left <= 0 and point not in IN_A_TRANSACTION:
                points.hook = None
                self.tell(f"  somebody at {point}")
                self.intrude()

        points.hook = hook if comes or chance < 0.25 else None
        try:
            act()
        except SimulatedCrash as crash:
            self.tell(f"  dead at {crash}")
            self.clock.wall_microseconds -= self.random.choice([0, 3_600_000_000])
            self.clock.advance(LEASE_SECONDS + 1)
            self.arrive()
            return False
        except CorruptRecordError:
            raise
        except StepwellError as error:
            self.tell(f"  {error.code}")
            return False
        finally:
            points.hook = None
        return True

    def intrude(self) -> None:
        """Another process does something to the thread, over its own connections."""
        with closing(self.opened()) as saver:
            graph, config = self.world.build(saver), self.of()
            if self.random.random() < 0.4:
                self.clock.advance(LEASE_SECONDS + 1)
            self.cut = True
            acts: list[Callable[[], object]] = [
                lambda: graph.invoke(None, config),
                lambda: graph.update_state(config, {"facts": {"by": "another"}}, as_node="last"),
                lambda: graph.fork(self.random.choice(list(graph.get_state_history(config))).config),
                lambda: saver.prune("t", keep_last=1),
                lambda: saver.verify(),
            ]
            try:
                self.random.choice(acts)()
            except CorruptRecordError:
                raise
            except StepwellError as error:
                self.tell(f"  it got {error.code}")

    # -- what is done -------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run an input to its end, answering what it asks."""
        given: Any = {"plan": self.plan()}
        for _ in range(9):
            mode: Any = self.random.choice(["sync", "sync", "async", "exit"])
            self.attempt(lambda given=given, mode=mode: self.graph.invoke(given, self.of(), durability=mode))  # type: ignore[misc]
            state = self.graph.get_state(self.of())
            if not state.next:
                return
            answer = self.random.choice(["yes", None, "no" * 9000])
            given = Command(resume={state.interrupts[0].id: answer}) if state.interrupts else None

    def somewhere(self) -> StateSnapshot:
        return self.random.choice(self.history())

    def replay(self) -> None:
        """Run on from somewhere, often from where something was asked, with another answer."""
        asked = [state for state in self.history() if state.interrupts]
        state = self.random.choice(asked) if asked and self.random.random() < 0.5 else self.somewhere()
        given = Command(resume="late") if state.interrupts else None
        if state.values.get("plan"):
            self.attempt(lambda: self.graph.invoke(given, state.config))

    def fork(self) -> None:
        state = self.somewhere()
        self.attempt(lambda: self.graph.fork(state.config))

    def edit(self) -> None:
        config = self.random.choice([self.of(), self.somewhere().config])
        written = self.random.choice([{"log": ["edited"]}, {"facts": Overwrite({})}, {"lines": ["z" * 9000]}])
        self.attempt(lambda: self.graph.update_state(config, written, as_node="last"))

    def prune(self) -> None:
        assert self.saver is not None
        kept = self.random.randint(1, 3)
        runs = [run.run_id for run in self.saver.runs(self.thread_id)]
        if self.random.random() < 0.3 and len(runs) > 1:
            chosen = self.random.sample(runs, len(runs) // 2)
            act: Callable[[], object] = lambda: self.saver.delete_for_runs(chosen, missing_ok=True)  # type: ignore[union-attr]  # noqa: E731
        else:
            act = lambda: self.saver.prune(self.thread_id, keep_last=kept)  # type: ignore[union-attr]  # noqa: E731
        before = self.graph.get_state(self.of())
        self.attempt(act, met=False)
        after = self.graph.get_state(self.of())
        assert (after.values, after.next, after.interrupts) == (before.values, before.next, before.interrupts)
        self.cut = True

    def copy(self) -> None:
        """Go on with a copy, and throw the original away."""
        assert self.saver is not None
        name, before = f"{self.thread_id}'", {id_of(state.config): shown(state) for state in self.history()}
        while not self.attempt(lambda: self.saver.copy_thread(self.thread_id, name), met=False):  # type: ignore[union-attr]
            if self.saver.get_tuple(self.of(name)) is not None:
                break
        self.saver.delete_thread(self.thread_id)
        self.thread_id = name
        assert {id_of(state.config): shown(state) for state in self.history()} == before

    def move(self) -> None:
        """Take the thread out as a file and into the next database."""
        assert self.saver is not None
        self.number += 1
        file, (_, *before) = self.folder / f"{self.number}.thread", self.rows(self.thread_id)
        self.saver.export_thread(self.thread_id, file)
        self.saver.delete_thread(self.thread_id)
        self.place = (self.place + 1) % len(self.opens)
        self.arrive()
        while not self.attempt(lambda: self.saver.import_thread(file), met=False):  # type: ignore[union-attr]
            if self.saver.get_tuple(self.of()) is not None:
                break
        assert self.rows(self.thread_id)[1:] == before

    def keep(self) -> None:
        """Begin another process, under another key, and give back room."""
        self.arrive()
        assert self.saver is not None
        if self.is_encrypted:
            self.attempt(self.saver.rekey, met=False)
        self.saver.vacuum()

    def live(self, actions: int) -> None:
        """Do so much at random, and look at everything after each."""
        acts = [self.run] * 5 + [self.replay, self.fork, self.edit, self.edit, self.prune, self.prune, self.copy]
        for number in range(actions):
            act = self.run if number == 0 else self.random.choice([*acts, self.move, self.keep])
            if act == self.run or self.history():
                self.tell(act.__name__)
                self.cut = False
                act()
                self.check()

    def end(self) -> None:
        """Close what is open."""
        points.hook = None
        if self.saver is not None:
            self.saver.close()

    def tell(self, what: str) -> None:
        self.told.append(what)

    # -- what is true -------------------------------------------------------------------------------------------------

    def history(self) -> list[StateSnapshot]:
        return list(self.graph.get_state_history(self.of()))

    def check(self) -> None:
        """Every row verifies; each checkpoint shows what it did, alone, in a list and to a process that just began;
        what runs came to is what they make; the other thread is as it was."""
        assert self.saver is not None
        assert self.saver.verify().is_sound
        now = {id_of(state.config): shown(state) for state in self.history()}
        for name, found in now.items():
            alone = shown(self.graph.get_state({"configurable": {"thread_id": self.thread_id, "checkpoint_id": name}}))
            assert alone == found
            assert _lasting(self.known.get(name, found)) == _lasting(found)
            self.ever.setdefault(name, {**found, "parent": ""} if self.cut else found)
        assert self.cut or self.known.keys() <= now.keys()
        self.known = now
        with closing(self.opened()) as saver:
            graph = self.world.build(saver)
            assert {id_of(state.config): shown(state) for state in graph.get_state_history(self.of())} == now
        for name in now:
            self.check_run(self.ever[name])
        assert self.rows("other") == self.beside

    def check_run(self, end: Shown) -> None:
        """Where a run ended that began in this history, with nothing edited on the way: it came to what it makes."""
        plan: Any = end["values"].get("plan")
        at: Shown | None = end
        while at is not None and at["at"][1] in ("loop", "input") and at["values"].get("plan") == plan:
            at = self.ever.get(at["parent"])
        if end["next"] or end["at"][1] != "loop" or at is None or at["values"].get("plan") == plan:
            return
        answers = end["values"].get("answers", [])[len(at["values"].get("answers", [])) :]
        assert len(answers) == plan["asks"]
        made = finished(at["values"], plan, answers)
        assert {name: end["values"].get(name) for name in made} == made


def _lasting(found: Shown) -> Any:
    return found["values"], found["next"], found["at"]
