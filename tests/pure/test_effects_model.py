"""INV-7: whatever happens to calls of effects, of one effect there is at most one attempt at a time whose outcome
nobody knows, exactly one receipt, and no blind repeat where the other side does not know keys."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stepwell.superstep.effects.keys import (
    BROUGHT,
    GLOBAL,
    keys_of_place,
    lineages_to_search,
    origin_of_lineage,
    position_key,
    renewed_key,
    user_key,
)
from stepwell.superstep.effects.rules import (
    COMPENSATED,
    DONE,
    DOUBT,
    FAILED,
    INTENT,
    Asked,
    InDoubt,
    Known,
    Perform,
    Refuse,
    Reuse,
    counting,
    judge,
)

VALID_FOR = 50


@dataclass(frozen=True)
class Row:
    key: str
    thread: str
    lineage: int
    position: str
    status: str
    fingerprint: str
    epoch: int
    seq: int
    receipt: int = 0
    finished_at: int = 0


@dataclass
class Thread:
    name: str
    copied_from: list[tuple[str, int]] = field(default_factory=list)
    epoch: int = 1
    lineage: int = 0
    forks: list[tuple[int, int | None, int | None]] = field(default_factory=lambda: [(0, None, None)])


class Crash(Exception):
    """The process dies here."""


@dataclass
class World:
    """The other side: what it was asked to do, and did."""

    keyed: bool
    done: dict[str, list[int]] = field(default_factory=dict)
    """Key → receipts of what was really done."""

    def act(self, key: str, number: int) -> int:
        made = self.done.setdefault(key, [])
        if self.keyed and made:
            return made[0]
        made.append(number)
        return number


ENDS = (
    "returns",
    "returns",
    "returns",
    "not performed",
    "not performed",
    "raises before acting",
    "raises after acting",
    "times out, returns late",
    "is still at it",
    "dies before intent",
    "dies after intent",
    "dies after acting",
)


class Effects(RuleBasedStateMachine):
    """Two threads and their copies call effects by position and by a global key."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[tuple[str, str], Row] = {}
        self.threads = {"t": Thread("t"), "u": Thread("u")}
        self.now = 0
        self.seq = 0
        self.number = 0
        self.worlds = {"retry": World(keyed=True), "raise": World(keyed=False), "look up": World(keyed=False)}
        self.open: dict[str, str] = {}
        """Key → policy of the attempt under it whose outcome nobody knows."""
        self.receipts: dict[str, int] = {}
        self.allowed: set[str] = set()
        """Keys of which a look-up said that nothing has happened."""
        self.prints: dict[str, str] = {}
        """Key → with what the body was called under it."""
        self.late: list[tuple[Row, int]] = []
        self.at_it: dict[tuple[str, str], tuple[Row, str]] = {}

    # -- the engine, in short ---------------------------------------------------------------------------------------

    def known(self, row: Row) -> Known:
        running = (row.key, row.thread) in self.at_it
        return Known(row.key, row.thread, row.status, row.fingerprint, row.finished_at, running)

    def under(self, key: str) -> list[Known]:
        return [self.known(row) for (its, _), row in sorted(self.rows.items()) if its == key]

    def at(self, thread: Thread, position: str) -> list[Row]:
        """Return a thread's effects at a position, the last one first."""
        found = [row for row in self.rows.values() if (row.thread, row.position) == (thread.name, position)]
        return sorted(found, key=lambda row: -row.seq)

    def judged(self, thread: Thread, asked: Asked, position: str) -> Perform | Reuse | InDoubt | Refuse:
        keys: list[str] = []
        if not asked.by_user:
            last: dict[int, list[str]] = {}
            for row in self.at(thread, position):
                if row.lineage == BROUGHT or row.lineage not in last:
                    last.setdefault(row.lineage, []).append(row.key)
            asked = asked._replace(key=last.pop(thread.lineage, [asked.key])[0])
            keys = keys_of_place(thread.name, thread.lineage, position, thread.forks, last, thread.copied_from)
        return judge(asked, self.under, counting(asked, keys, self.under, self.now), self.now)

    def write(self, thread: Thread, key: str, position: str, fingerprint: str, status: str, receipt: int = 0) -> Row:
        self.seq += 1
        before = self.rows.get((key, thread.name))
        lineage = thread.lineage if before is None else before.lineage
        row = Row(key, thread.name, lineage, position, status, fingerprint, thread.epoch, self.seq, receipt, self.now)
        if position.startswith("global"):
            self.rows = {place: other for place, other in self.rows.items() if place[0] != key}
        self.rows[key, thread.name] = row
        if status == DONE:
            assert self.receipts.setdefault(key, receipt) == receipt, "a second receipt under one key"
        if status in (DONE, FAILED, COMPENSATED):
            self.open.pop(key, None)
        return row

    def perform(self, thread: Thread, key: str, position: str, fingerprint: str, policy: str, end: str) -> None:
        if end == "dies before intent":
            raise Crash
        blind = key in self.open and not (policy == "retry" and self.open[key] == "retry") and key not in self.allowed
        assert not blind, "repeated although nobody knows"
        assert all(key != its for its, _ in self.at_it), "somebody is at it"
        assert key not in self.receipts, "repeated although there is a receipt"
        assert self.prints.setdefault(key, fingerprint) == fingerprint, "one key for two things"
        self.allowed.discard(key)
        intent = self.write(thread, key, position, fingerprint, INTENT)
        self.open[key] = policy
        if end == "dies after intent":
            raise Crash
        if end == "is still at it":
            self.at_it[key, thread.name] = (intent, policy)
            return
        if end == "not performed":
            self.write(thread, key, position, fingerprint, FAILED)
            return
        receipt = 0
        if end != "raises before acting":
            self.number += 1
            receipt = self.worlds[policy].act(key, self.number)
        if end == "dies after acting":
            raise Crash
        if end == "returns":
            self.write(thread, key, position, fingerprint, DONE, receipt)
            return
        doubt = self.write(thread, key, position, fingerprint, DOUBT)
        if end == "times out, returns late":
            self.late.append((doubt, receipt))
        assert intent.seq < doubt.seq

    def settle(self, row: Row, policy: str) -> None:
        """Say of what is in doubt what really happened."""
        made = self.worlds[policy].done.get(row.key, [])
        thread = self.threads[row.thread]
        if made:
            self.write(thread, row.key, row.position, row.fingerprint, DONE, made[0])
        else:
            self.write(thread, row.key, row.position, row.fingerprint, FAILED)

    # -- what may happen --------------------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(["t", "u", "copy"]),
        place=st.sampled_from(["retry", "raise", "look up"]),
        by_user=st.sampled_from([False, False, True]),
        fingerprint=st.sampled_from(["a", "a", "b"]),
        on_fork=st.sampled_from(["reuse", "reuse", "reuse", "reissue", "forbid"]),
        expires=st.booleans(),
        end=st.sampled_from(ENDS),
    )
    def call(
        self, name: str, place: str, by_user: bool, fingerprint: str, on_fork: str, expires: bool, end: str
    ) -> None:
        """A policy is declared with the effect: it goes with the place."""
        thread = self.threads.get(name)
        if thread is None:
            return
        position = f"global {place}" if by_user else place
        origin = origin_of_lineage(name, thread.lineage, thread.copied_from)
        key = user_key(GLOBAL, origin, place) if by_user else position_key(origin, thread.lineage, position)
        asked = Asked(key, fingerprint, name, by_user, "reuse" if by_user else on_fork, VALID_FOR if expires else None)
        verdict = self.judged(thread, asked, position)
        self.checked(thread, asked, position, verdict)
        try:
            if isinstance(verdict, Perform):
                self.perform(thread, verdict.key, position, fingerprint, place, end)
            elif isinstance(verdict, InDoubt):
                self.doubted(thread, verdict.effect, position, place, end)
        except Crash:
            self.died(thread)

    def died(self, thread: Thread) -> None:
        thread.epoch += 1
        self.at_it = {place: each for place, each in self.at_it.items() if place[1] != thread.name}

    def doubted(self, thread: Thread, effect: Known, position: str, policy: str, end: str) -> None:
        if policy == "raise":
            return
        if policy == "look up":
            made = self.worlds[policy].done.get(effect.key, [])
            if made:
                self.write(thread, effect.key, position, effect.fingerprint, DONE, made[0])
                return
            self.allowed.add(effect.key)
        self.perform(thread, effect.key, position, effect.fingerprint, policy, end)

    def checked(self, thread: Thread, asked: Asked, position: str, verdict: Perform | Reuse | InDoubt | Refuse) -> None:
        mine = next((row for row in self.at(thread, position) if row.lineage == thread.lineage), None)
        if mine is not None and not asked.by_user and mine.status != FAILED:
            if mine.fingerprint != asked.fingerprint:
                assert isinstance(verdict, Refuse), "a position is called with other inputs"
            elif not self.is_old(asked, mine):
                assert not isinstance(verdict, Perform), "it happened here, or may have"
                assert isinstance(verdict, Perform) or verdict.effect.key == mine.key, "another effect answers for it"
        if asked.on_fork == "reuse" and self.that_count(thread, asked, position):
            assert not isinstance(verdict, Perform), "it happened where it counts, or may have"
        if isinstance(verdict, Reuse):
            assert verdict.effect.key in self.receipts
            assert verdict.effect.fingerprint == asked.fingerprint, "a receipt of something else"
            assert not self.is_old(asked, verdict.effect)
            assert verdict.inherited or verdict.effect.thread_id == thread.name
        if isinstance(verdict, InDoubt):
            assert verdict.effect.key not in self.receipts
            assert verdict.effect.fingerprint == asked.fingerprint

    def is_old(self, asked: Asked, effect: Row | Known) -> bool:
        valid_for = asked.valid_for
        return effect.status == DONE and valid_for is not None and self.now - effect.finished_at > valid_for

    def that_count(self, thread: Thread, asked: Asked, position: str) -> list[Row]:
        """Return what has happened, or may have, with the same inputs where this call must be told of it."""
        ahead = (thread.lineage, *lineages_to_search(thread.lineage, thread.forks))
        copied = {name for name, other in self.threads.items() if other.copied_from} | {"t"}
        return [
            row
            for row in self.rows.values()
            if (row.position, row.fingerprint) == (position, asked.fingerprint)
            and row.status != FAILED
            and not self.is_old(asked, row)
            and (
                asked.by_user
                or (row.thread == thread.name and row.lineage in ahead)
                or (self.is_shared(row) and thread.name in copied and row.lineage in ahead)
            )
        ]

    def is_shared(self, row: Row) -> bool:
        """Tell whether a row stands under a key that a copy of its thread knows the place by."""
        lineages = self.threads["copy"].copied_from[0][1] if "copy" in self.threads else 0
        key = position_key("t", row.lineage, row.position)
        while key != row.key and self.under(key):
            key = renewed_key(key)
        return key == row.key and row.thread in ("t", "copy") and 0 <= row.lineage < lineages

    @rule(name=st.sampled_from(["t", "u", "copy"]), back=st.integers(0, 3))
    def fork(self, name: str, back: int) -> None:
        thread = self.threads.get(name)
        if thread is None or len(thread.forks) > 5:
            return
        parent = thread.forks[min(back, len(thread.forks) - 1)][0]
        thread.lineage = len(thread.forks)
        thread.forks.append((thread.lineage, parent, 10 + parent))

    @precondition(lambda self: "copy" not in self.threads)
    @rule()
    def copy(self) -> None:
        source = self.threads["t"]
        self.threads["copy"] = Thread("copy", [("t", len(source.forks))], 1, source.lineage, list(source.forks))
        for (key, thread), row in list(self.rows.items()):
            if thread == "t" and not row.position.startswith("global"):
                self.rows[key, "copy"] = replace(row, thread="copy", epoch=0)

    @precondition(lambda self: "branch" not in self.threads)
    @rule()
    def fork_into_another_thread(self) -> None:
        self.threads["branch"] = Thread("branch")
        source = self.threads["t"]
        order = (source.lineage, *lineages_to_search(source.lineage, source.forks))
        brought = [
            next(row for row in self.at(source, position) if row.lineage == lineage)
            for position, lineage in {(row.position, row.lineage) for row in self.rows.values() if row.thread == "t"}
            if lineage in order and not position.startswith("global")
        ]
        for (key, thread), row in list(self.rows.items()):
            if thread == "t" and row in brought:
                self.rows[key, "branch"] = replace(row, thread="branch", lineage=BROUGHT, epoch=0)

    @precondition(lambda self: "branch" in self.threads)
    @rule(place=st.sampled_from(["retry", "raise", "look up"]), end=st.sampled_from(ENDS))
    def call_in_the_branch(self, place: str, end: str) -> None:
        thread = self.threads["branch"]
        asked = Asked(position_key("branch", 0, place), "a", "branch", False)
        verdict = self.judged(thread, asked, place)
        self.checked(thread, asked, place, verdict)
        brought = [row for row in self.rows.values() if (row.thread, row.lineage) == ("branch", BROUGHT)]
        happened = [row for row in brought if (row.position, row.fingerprint) == (place, "a") and row.status == DONE]
        assert not (happened and isinstance(verdict, Perform))
        try:
            if isinstance(verdict, Perform):
                self.perform(thread, verdict.key, place, "a", place, end)
            elif isinstance(verdict, InDoubt):
                self.doubted(thread, verdict.effect, place, place, end)
        except Crash:
            self.died(thread)

    @rule(seconds=st.sampled_from([1, 60]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @precondition(lambda self: self.at_it)
    @rule(data=st.data(), end=st.sampled_from(["returns", "not performed", "raises after acting", "loses its thread"]))
    def who_is_at_it_ends(self, data: st.DataObject, end: str) -> None:
        place = data.draw(st.sampled_from(sorted(self.at_it)))
        row, policy = self.at_it.pop(place)
        thread = self.threads[row.thread]
        if end == "loses its thread":
            self.died(thread)
        elif end == "not performed":
            self.write(thread, row.key, row.position, row.fingerprint, FAILED)
        else:
            self.number += 1
            receipt = self.worlds[policy].act(row.key, self.number)
            status = DONE if end == "returns" else DOUBT
            self.write(thread, row.key, row.position, row.fingerprint, status, receipt)

    @precondition(lambda self: self.late)
    @rule()
    def a_body_returns_late(self) -> None:
        """It settles its doubt, if the row is still as it left it and its run still holds the thread."""
        row, receipt = self.late.pop(0)
        thread = self.threads[row.thread]
        if self.rows.get((row.key, row.thread)) == row and thread.epoch == row.epoch and row.key in self.open:
            self.write(thread, row.key, row.position, row.fingerprint, DONE, receipt)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def an_operator_resolves(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.open)))
        rows = [row for row in self.rows.values() if row.key == key and row.status in (INTENT, DOUBT)]
        for row in rows[:1] if all((row.key, row.thread) not in self.at_it for row in rows) else ():
            self.settle(row, self.open[key])

    @rule(data=st.data())
    def compensate(self, data: st.DataObject) -> None:
        done = [row for row in self.rows.values() if row.status == DONE]
        if done:
            row = data.draw(st.sampled_from(sorted(done, key=lambda each: (each.key, each.thread))))
            self.rows[row.key, row.thread] = replace(row, status=COMPENSATED)

    # -- what must stay true ----------------------------------------------------------------------------------------

    @invariant()
    def without_keys_nothing_happens_twice(self) -> None:
        for policy in ("raise", "look up"):
            for key, made in self.worlds[policy].done.items():
                assert len(made) == 1, f"{key} happened {len(made)} times"

    @invariant()
    def what_is_known_really_happened(self) -> None:
        for key, receipt in self.receipts.items():
            assert any(receipt in world.done.get(key, []) for world in self.worlds.values())


TestEffects = Effects.TestCase
TestEffects.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
