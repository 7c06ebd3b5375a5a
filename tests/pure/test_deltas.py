"""Channels stored as what was written to them: whatever happens, a reader finds the value that folding it whole gives.

A life is a sequence of supersteps on a shelf of rows, with crashes, forks, supersteps that get no row, outcomes that
records hold, and deployments that declare a channel otherwise. Its values are kept a second time as they would be if
each were stored whole.
"""

import hashlib
import operator
from collections.abc import Sequence
from copy import copy
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest
from hypothesis import given, strategies as st
from langchain_core.messages import HumanMessage

from stepwell.errors import CorruptRecordError, UnknownReducerError
from stepwell.graph.channels import DeltaChannel
from stepwell.graph.messages import add_messages
from stepwell.graph.types import Overwrite
from stepwell.runtime.draft import Draft
from stepwell.runtime.growing import Growing
from stepwell.runtime.holders import Holders
from stepwell.store import NO_DIGEST, BlobRow, CheckpointRow, RecordRow
from stepwell.superstep import blobs, body as layout
from stepwell.superstep.begin import initial_values
from stepwell.superstep.body import deltas
from stepwell.superstep.body.channels import rows_of, runs_of
from stepwell.superstep.merge import merge
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.references import references
from stepwell.superstep.state import Base, Planned, State, Task
from tests.pure.model.parts import codec_of, identity, plan_of


def joined(value: Any, writes: Sequence[Any]) -> Any:
    """A reducer of batches that changes its argument, as users' reducers do."""
    for write in writes:
        value.extend(write)
    return value


def longer(left: list[Any], right: list[Any]) -> list[Any]:
    """A reducer that is known to nobody."""
    return [*left, *right]


def state_with(kind: Any) -> Any:
    class Kinds(TypedDict, total=False):
        log: Annotated[list[Any], kind]
        marks: Annotated[dict[str, Any], operator.or_]
        talk: Annotated[list[Any], add_messages]
        last: Any

    return Kinds


KINDS = [operator.add, DeltaChannel(joined), DeltaChannel(joined, name="joined@2", snapshot_frequency=2), longer]
PLANS = [plan_of("abc", schema=state_with(kind)) for kind in KINDS]
CODEC = codec_of(PLANS[0])


class Shelf:
    """Rows of a thread, and how often they were asked for."""

    def __init__(self) -> None:
        self.rows: dict[int, CheckpointRow] = {}
        self.kept: dict[int, RecordRow] = {}
        self.large: dict[bytes, bytes] = {}
        self.queries = 0

    def checkpoints(self, thread_id: str, seqs: Sequence[int]) -> list[CheckpointRow]:
        self.queries += 1
        return [self.rows[seq] for seq in seqs]

    def records_at(self, thread_id: str, seqs: Sequence[int]) -> list[RecordRow]:
        self.queries += 1
        return [self.kept[seq] for seq in seqs]

    def blobs(self, thread_id: str, names: Sequence[bytes]) -> list[BlobRow]:
        self.queries += 1
        return [BlobRow(thread_id, name, self.large[name], b"") for name in names]


class Stand(NamedTuple):
    """Where the next superstep begins: the live values, what the rows say, and the values as stored whole."""

    values: dict[str, Any]
    holds: dict[str, int]
    expected: dict[str, Any]


class Life:
    """What the ledger does with a channel, without everything else."""

    def __init__(self) -> None:
        self.shelf: Any = Shelf()
        self.seq = 0
        self.heads: dict[int, dict[str, Any]] = {}
        """Row → the values that it must give."""
        self.plan = PLANS[0]
        self.growing = Growing(self.plan)
        self.draft: Draft | None = None
        self.at = Stand(initial_values(self.plan), {}, initial_values(self.plan))
        self.seal(Draft(identity(), State(self.at.values), 0, "input", None, NO_DIGEST))

    def superstep(self, outcomes: Sequence[Succeeded], recorded: Sequence[bool], row: bool) -> None:
        """Merge outcomes of tasks a, b, c and commit what came of it, or leave it to a later row."""
        tasks = Base(State({}, tuple(map(Planned, "abc"[: len(outcomes)]))), identity()).tasks
        state, changed = merge(self.plan, State(self.at.values), tasks, outcomes)
        expected, _ = merge(self.plan, State(self.at.expected), tasks, outcomes)
        holds = {key: seq for key, seq in self.at.holds.items() if key not in changed}
        sources = [(t, o, self.record(t, o) if r else None) for t, o, r in zip(tasks, outcomes, recorded, strict=False)]
        before = self.at.values
        self.at = Stand(dict(state.values), holds, dict(expected.values))
        self.growing.leave(self.draft)
        self.draft = Draft(identity(), state, 0, "loop", None, NO_DIGEST, sources, (), before)
        if row:
            self.flush()

    def record(self, task: Task, outcome: Succeeded) -> int:
        self.seq += 1
        body = blobs.apart(layout.encode_succeeded(CODEC, self.plan, task, outcome), self.put)
        columns = ("t", "", 0, self.seq, 0, b"", 0, "succeeded", task.id, "", 0, body, b"")
        self.shelf.kept[self.seq] = RecordRow(*columns)
        return self.seq

    def flush(self) -> None:
        draft, self.draft = self.draft, None
        if draft is not None:
            self.seal(draft)

    def seal(self, draft: Draft) -> None:
        self.seq += 1
        ground, holds = self.growing.ground(draft.before), dict(self.at.holds)
        encoded = layout.encode_checkpoint(CODEC, self.plan, draft.state, self.seq, draft.sources, holds, (), ground)
        body = blobs.apart(encoded.body, self.put)
        columns = ("t", "", 0, self.seq, "", None, b"", 0, "loop", "", "", "", "", 0, "", body, b"")
        self.shelf.rows[self.seq] = CheckpointRow(*columns)
        for key in encoded.values:
            holds.setdefault(key, self.seq)
        self.growing.follow(encoded.chains, holds, self.seq, self.reference)
        self.at = Stand(dict(encoded.values), holds, self.at.expected)
        self.heads[self.seq] = self.at.expected
        assert self.at.values == self.at.expected  # INV-5: the live values are those that reading gives
        assert self.read(self.seq) == self.at.expected

    def put(self, data: bytes) -> bytes:
        name = hashlib.blake2b(data, digest_size=16).digest()
        self.shelf.large[name] = data
        return name

    def reference(self, data: bytes) -> blobs.BlobRef:
        """Return what stands for what a row has apart: nothing that no row has may be named."""
        name = hashlib.blake2b(data, digest_size=16).digest()
        assert name in self.shelf.large
        return blobs.BlobRef(name)

    def read(self, seq: int) -> dict[str, Any]:
        """Return the values as a process finds them that knows the rows alone."""
        return self.values(self.reader(seq), seq)

    def read_page(self) -> dict[int, dict[str, Any]]:
        """Return the values of all rows, read together, the newest first, by somebody who changes each."""
        holders = Holders("t", [self.shelf.rows[seq] for seq in self.heads])
        holders.gather_all(self.shelf, self.heads)
        found = {}
        for seq in sorted(self.heads, reverse=True):
            values = self.values(holders, seq)
            found[seq] = {key: copy(value) for key, value in values.items()}
            for value in values.values():
                if isinstance(value, list | dict):
                    value.clear()
        return found

    def values(self, holders: Holders, seq: int) -> dict[str, Any]:
        held = layout.holds_of(holders[seq], seq)
        rules = {name: rule for plan in PLANS for name, rule in plan.rules.items()}
        return {key: holders.value(CODEC, key, at, rules) for key, at in held.items()}

    def reader(self, seq: int) -> Holders:
        holders = Holders("t", [self.shelf.rows[seq]])
        holders.gather_all(self.shelf, [seq])
        return holders

    def stand_on(self, seq: int) -> None:
        """Go on from a row: after a crash from the last one, after a fork from any."""
        self.draft = None
        self.growing = Growing(self.plan)
        values = self.read(seq)
        holds = layout.holds_of(self.reader(seq)[seq], seq)
        self.growing.chains = self.reader(seq).chains(holds, self.plan)
        self.at = Stand(values, holds, dict(self.heads[seq]))

    def deploy(self, kind: int) -> None:
        """Declare the log otherwise, and go on from the newest row."""
        self.plan = PLANS[kind]
        self.stand_on(max(self.heads))


words = st.lists(st.text("ab", max_size=4), max_size=3)
marks = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 9), max_size=2)
said = st.lists(st.builds(HumanMessage, id=st.sampled_from("123456"), content=st.text("ab")), max_size=2)


def perhaps_over(value: Any) -> Any:
    return st.one_of(value, value, value, value.map(Overwrite))


updates = st.fixed_dictionaries(
    {},
    optional={
        "log": perhaps_over(words),
        "marks": perhaps_over(marks),
        "talk": perhaps_over(said),
        "last": st.text("ab", max_size=9),
    },
)
outcome = updates.map(lambda update: Succeeded(tuple(update.items()), ()))


@st.composite
def supersteps(draw: Any) -> tuple[str, Any]:
    """One to three tasks, at most one of which overwrites a channel, and only one of which writes `last`."""
    made, over, names = [], set[str](), draw(st.integers(1, 3))
    for _ in range(names):
        writes = []
        for key, value in draw(outcome).writes:
            if isinstance(value, Overwrite) or key == "last":
                if key in over:
                    continue
                over.add(key)
            writes.append((key, value))
        made.append(Succeeded(tuple(writes), ()))
    return "superstep", (
        made,
        draw(st.lists(st.booleans(), min_size=names, max_size=names)),
        draw(st.integers(0, 3)) > 0,
    )


operations = st.one_of(
    supersteps(),
    supersteps(),
    supersteps(),
    st.tuples(st.just("crash"), st.none()),
    st.tuples(st.just("fork"), st.integers(0, 99)),
    st.tuples(st.just("deploy"), st.integers(0, len(KINDS) - 1)),
)


@pytest.fixture(params=[(2, 2, 5, 12), (16, 4, 256, 8192), (3, 10**6, 3, 8192), (2, 10**6, 100, 4)], ids=str)
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Chains in which deltas are soon taken over, and the usual ones; the last number is that of `blobs.ABOVE`."""
    *numbers, above = request.param
    monkeypatch.setattr(deltas, "LIMITS", deltas.Limits(*numbers))
    monkeypatch.setattr(blobs, "ABOVE", above)
    return request.param


@given(st.lists(operations, max_size=30))
def test_a_reader_finds_what_storing_every_value_whole_would_give(limits: Any, life: list[tuple[str, Any]]) -> None:
    """INV-5, INV-12 and INV-13: live, and from the rows of every superstep, however the life went."""
    one = Life()
    for name, made in life:
        if name == "superstep":
            one.superstep(*made)
        elif name == "crash":
            one.stand_on(max(one.heads))
        elif name == "fork":
            one.stand_on(sorted(one.heads)[made % len(one.heads)])
        else:
            one.deploy(made)
    one.flush()
    assert {seq: one.read(seq) for seq in one.heads} == one.heads
    assert one.read_page() == one.heads


# -- chains -----------------------------------------------------------------------------------------------------------


def appended(times: int, row: bool = True) -> Life:
    """A life in which one task after the other appends a word to a long log."""
    life = Life()
    life.superstep([Succeeded((("log", ["x" * 99_999]),), ())], [False], True)
    for i in range(times):
        life.superstep([Succeeded((("log", [str(i)]),), ())], [False], row)
    return life


def entry(life: Life, seq: int) -> tuple[int, Any]:
    kind, payload = layout.open_checkpoint(life.shelf.rows[seq].body, "r").channels["log"]
    return kind, payload


def test_a_chain_of_any_length_is_read_at_once() -> None:
    """INV-13: a resume reads a bounded chain: 15 rows for each digit of its length to the base of 16."""
    life = appended(530)
    lengths = {seq: len(layout.chain_rows(opened_at(life, seq), "log", seq, "r")) for seq in life.heads}
    assert max(lengths.values()) == 31  # of the 511th delta: fourteen, fifteen that took over 15, one 255; the snapshot
    assert lengths[life.seq] == 5  # of the 530th: two that took over 255, one 15, one; the snapshot
    life.shelf.queries = 0
    life.reader(life.seq)
    assert life.shelf.queries == 3  # the rows that hold other channels, those of the chain, and what stands apart


def test_a_snapshot_is_written_when_the_chain_weighs_twice_the_value() -> None:
    """INV-13: what is read is at most four times the value, and what is stored whole at most what was written."""
    life = Life()
    for i in range(300):
        life.superstep([Succeeded((("marks", {"xyz"[i % 3]: i}),), ())], [False], True)
    stored = [opened_at(life, seq).channels["marks"] for seq in life.heads if "marks" in opened_at(life, seq).channels]
    whole = [payload[1] for kind, payload in stored if kind == layout.SNAPSHOT]
    assert 10 < len(whole) < 60
    assert max(payload[3] for kind, payload in stored if kind == layout.DELTA) <= 4 * max(whole)


def test_a_list_that_only_grows_is_stored_whole_once() -> None:
    life = Life()
    for i in range(40):
        life.superstep([Succeeded((("log", [f"{i:090d}"]),), ())], [False], True)
    assert [entry(life, seq)[0] for seq in list(life.heads)[1:]] == [layout.SNAPSHOT] + [layout.DELTA] * 39


def test_what_stands_apart_is_named_by_those_that_take_it_over() -> None:
    """G2: a write of a megabyte is stored once however often it is taken over."""
    life = Life()
    for i in range(40):
        life.superstep([Succeeded((("log", [str(i) * 9000]),), ())], [False], True)
    assert sum(map(len, life.shelf.large.values())) < 40 * 2 * 9100
    assert max(len(row.body) for row in life.shelf.rows.values()) < 700
    life.stand_on(life.seq)
    for i in range(10):
        life.superstep([Succeeded((("log", [str(i)]),), ())], [False], True)


def opened_at(life: Life, seq: int) -> layout.Opened:
    return layout.open_checkpoint(life.shelf.rows[seq].body, "r")


def test_supersteps_without_a_row_are_part_of_the_next_delta() -> None:
    life = appended(9, row=False)
    life.flush()
    kind, payload = entry(life, life.seq)
    assert (kind, payload[0]) == (layout.DELTA, 1)
    ((writes,),) = payload[2]
    assert CODEC.loads(writes) == [[str(i)] for i in range(8)]
    assert len(life.shelf.rows[life.seq].body) < 500


def test_a_run_that_writes_no_rows_does_not_remember_everything() -> None:
    life = appended(300, row=False)
    held = life.growing.ground({})
    assert held is not None
    assert len(held.unwritten["log"].writes) <= 256
    life.flush()
    assert entry(life, life.seq)[0] == layout.SNAPSHOT


def test_a_delta_needs_the_rows_of_its_chain() -> None:
    life = appended(3)
    opened = layout.open_checkpoint(life.shelf.rows[life.seq].body, "r")
    assert references(opened, life.seq).checkpoints >= {life.seq - 1, life.seq - 2, life.seq - 3}


def test_a_reducer_that_is_not_at_hand_is_an_error_naming_it() -> None:
    life = Life()
    life.deploy(1)
    life.superstep([Succeeded((("log", ["x" * 99]),), ())], [False], True)
    life.superstep([Succeeded((("log", ["y"]),), ())], [False], True)
    with pytest.raises(
        UnknownReducerError, match=r"Channel log of thread t .* to be folded by delta:.*joined"
    ) as caught:
        life.reader(life.seq).value(CODEC, "log", life.seq)
    assert caught.value.code == "unknown_reducer"


@pytest.mark.parametrize("runs", [[], [1, 0], [1, -1], [0, 1], [1], [1, 99], [10**15, 1], [1, "1"]], ids=str)
def test_a_delta_that_follows_nothing_is_a_corrupt_record(runs: list[Any]) -> None:
    life = appended(1)
    opened = opened_at(life, life.seq)
    opened.channels["log"][1][1][:] = runs
    with pytest.raises(CorruptRecordError, match="channel 'log': "):
        layout.chain_rows(opened, "log", life.seq, "r")


@given(st.lists(st.integers(0, 400), unique=True, min_size=1))
def test_rows_are_found_again_in_their_runs(rows: list[int]) -> None:
    ordered = sorted(rows, reverse=True)
    assert rows_of(401, runs_of(401, ordered)) == ordered


def test_regular_rows_are_few_runs() -> None:
    assert runs_of(100, [99, 98, 97, 96, 80, 64, 48, 32, 16, 3]) == [4, 1, 5, 16, 1, 13]
