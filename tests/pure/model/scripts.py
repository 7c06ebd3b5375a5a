"""What happens to a thread, as data: inputs, answers, edits, forks, replays, new versions; and where it is killed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from stepwell import points
from stepwell.testing.graphs import GraphScript


@dataclass(frozen=True)
class Begin:
    """A new input; what is planned or asked is dropped."""

    text: str


@dataclass(frozen=True)
class Reply:
    """Answer some of the open questions, at least one, with this value; where none is open, go on."""

    which: int
    """A bit set over the open questions in listing order, taken modulo what there is."""
    value: Any


@dataclass(frozen=True)
class ReplyEarlier:
    """Answer one question that is open, as it was asked, on a checkpoint this far from the newest."""

    back: int
    value: Any


@dataclass(frozen=True)
class ReplyByOldId:
    """Answer at the head by an id that some question of the thread has or once had, counted from the oldest."""

    number: int
    value: Any


@dataclass(frozen=True)
class Continue:
    """Go on from wherever the thread stands."""


@dataclass(frozen=True)
class Redirect:
    """A command from outside: an update, and a jump beside what is planned."""

    text: str
    goto: int


@dataclass(frozen=True)
class Edit:
    """Write the state as if a node had, at the checkpoint this far from the newest."""

    back: int
    node: int
    text: str


@dataclass(frozen=True)
class Rewrite:
    """Several supersteps of updates at once, at the checkpoint this far from the newest.

    Each is the numbers of the nodes that the updates act as, or one of the words "clear", "input" and "copy"; a copy
    may bring updates of its own.
    """

    back: int
    supersteps: tuple[tuple[str, tuple[int, ...]], ...]
    text: str


@dataclass(frozen=True)
class Retry:
    """Run some of the tasks planned at the head anew, at least one; where none is planned, go on."""

    which: int
    """A bit set over the tasks in listing order, taken modulo what there is."""


@dataclass(frozen=True)
class Fork:
    """Begin a new lineage at the checkpoint this far from the newest."""

    back: int


@dataclass(frozen=True)
class Replay:
    """Run on from the checkpoint this far from the newest."""

    back: int


@dataclass(frozen=True)
class Redeploy:
    """The same graph comes back as another version of the code."""


Driving = Begin | Reply | ReplyEarlier | ReplyByOldId | Continue | Redirect | Retry | Replay | Redeploy
Op = Driving | Edit | Rewrite | Fork
Crash = tuple[str, int]
"""A named point, and which time it is reached."""


@dataclass(frozen=True)
class Step:
    """An operation and what goes wrong meanwhile."""

    op: Op
    crashes: tuple[Crash, ...] = ()
    broken: frozenset[str] = frozenset()
    """Nodes that fail for as long as this step lasts; the thread is left failed."""
    same_call: bool = True
    """After a crash: make the same call with the same run id, or continue the thread without it."""


@dataclass(frozen=True)
class Script:
    """A graph and what happens to one thread of it."""

    graph: GraphScript
    steps: tuple[Step, ...] = field(default=())


def chosen_of(among: Sequence[Any], which: int) -> list[int]:
    """Return the positions that a bit set chooses, at least one where there is any."""
    chosen = [i for i in range(len(among)) if which >> i & 1]
    return chosen or ([which % len(among)] if among else [])


texts = st.sampled_from(["x", "y"])
answers = st.sampled_from(["yes", None, 0])
backs = st.integers(0, 5)
numbers = st.integers(0, 4)
acts = st.lists(numbers, min_size=1, max_size=3).map(tuple)
supersteps = st.one_of(
    st.tuples(st.just("act"), acts),
    st.tuples(st.sampled_from(["clear", "input", "copy"]), st.just(())),
    st.tuples(st.just("copy"), acts),
)
OPS: dict[str, st.SearchStrategy[Any]] = {
    "begin": st.builds(Begin, texts),
    "reply": st.builds(Reply, st.integers(0, 7), answers),
    "reply earlier": st.builds(ReplyEarlier, backs, answers),
    "reply by old id": st.builds(ReplyByOldId, st.integers(0, 5), answers),
    "continue": st.just(Continue()),
    "redirect": st.builds(Redirect, texts, st.integers(0, 4)),
    "edit": st.builds(Edit, backs, st.integers(0, 4), texts),
    "edit head": st.builds(Edit, st.just(0), st.integers(0, 4), texts),
    "rewrite": st.builds(Rewrite, backs, st.lists(supersteps, min_size=1, max_size=3).map(tuple), texts),
    "rewrite head": st.builds(Rewrite, st.just(0), st.tuples(supersteps), texts),
    "retry": st.builds(Retry, st.integers(0, 7)),
    "fork": st.builds(Fork, backs),
    "replay": st.builds(Replay, backs),
    "redeploy": st.just(Redeploy()),
}
AT_THE_HEAD = ("begin", "reply", "reply", "continue", "redeploy")
EVERYWHERE = tuple(OPS)
crash_points = st.tuples(st.sampled_from(points.ALL), st.integers(1, 6))


@st.composite
def scripts(
    draw: Any,
    graphs: st.SearchStrategy[GraphScript],
    kinds: tuple[str, ...] = EVERYWHERE,
    *,
    crashes: int = 2,
    breaks: bool = True,
    most: int = 5,
) -> Script:
    """Return scripts that begin with an input and go on with operations of these kinds."""
    graph = draw(graphs)
    names = [node.name for node in graph.nodes]
    steps: list[Step] = []
    for i in range(draw(st.integers(1, most))):
        op = draw(OPS["begin"] if i == 0 else OPS[draw(st.sampled_from(kinds))])
        dies = draw(st.lists(crash_points, max_size=crashes)) if crashes else []
        broken = draw(st.sets(st.sampled_from(names), max_size=2)) if breaks and draw(st.booleans()) else set()
        steps.append(Step(op, tuple(dies), frozenset(broken), draw(st.booleans())))
    return Script(graph, tuple(steps))
