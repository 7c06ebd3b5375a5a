"""What a checkpoint needs of other rows is said in one place, for whoever keeps, copies, checks or deletes rows."""

from typing import Any

import ormsgpack
import pytest

from stepwell.errors import CorruptRecordError
from stepwell.superstep import blobs, body as layout
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.references import References, blobs_of, references
from stepwell.superstep.state import Base, Planned, State
from tests.pure.model.parts import codec_of, identity, plan_of, pulls

PLAN = plan_of()
CODEC = codec_of(PLAN)


def _opened(body: bytes) -> layout.Opened:
    return layout.open_checkpoint(body, "checkpoint 9")


def test_a_checkpoint_needs_the_rows_that_hold_its_unchanged_channels_and_the_records_it_was_made_of() -> None:
    a, b = Base(State({}, pulls("a", "b")), identity()).tasks
    state = State({"log": ["x"], "total": 3, "last": "y"}, pulls("c"), writers=("a", "b"))
    outcomes = [(a, Succeeded((("last", "y"),), ()), None), (b, Succeeded((("total", 3),), ()), 7)]
    body = layout.encode_checkpoint(CODEC, PLAN, state, 9, outcomes, {"log": 4}).body
    assert references(_opened(body), 9) == References(frozenset({4}), frozenset({7}))


def test_a_checkpoint_that_holds_everything_itself_needs_no_other_row() -> None:
    body = layout.encode_checkpoint(CODEC, PLAN, State({"log": ["x"]}, pulls("a")), 9, [], {}).body
    assert references(_opened(body), 9) == References(frozenset(), frozenset())


@pytest.mark.parametrize("outcomes, channels", [([["a", None, 0, "x"]], {}), ([], {"log": [layout.DISTANCE, "x"]})])
def test_what_does_not_fit_the_layout_is_a_corrupt_record(outcomes: Any, channels: Any) -> None:
    body = ormsgpack.packb([layout.FORMAT, outcomes, channels, [], [], {}, [], {}, [], []])
    with pytest.raises(CorruptRecordError), layout.reading("checkpoint 9"):
        references(_opened(body), 9)


def test_a_checkpoint_and_a_record_name_the_values_that_stand_apart() -> None:
    (task,) = Base(State({}, pulls("a")), identity()).tasks
    large = "y" * 9000
    outcome = Succeeded((("last", large), ("total", 3)), ())
    state = State({"last": large, "total": 3}, (Planned("b", 0, {"n": "z" * 9000}),))
    stored: dict[bytes, bytes] = {}

    def put(data: bytes) -> bytes:
        name = bytes([len(stored)]) * 16
        stored[name] = data
        return name

    body = blobs.apart(layout.encode_checkpoint(CODEC, PLAN, state, 9, [(task, outcome, None)], {}).body, put)
    assert len(body) < 300
    assert references(_opened(body), 9).blobs == frozenset(stored)
    assert sorted(CODEC.loads(data)[0] for data in stored.values()) == ["y", "z"]
    record = blobs.apart(layout.encode_succeeded(CODEC, PLAN, task, outcome), put)
    assert blobs_of(record) == frozenset(list(stored)[2:])
    assert blobs_of(layout.encode_succeeded(CODEC, PLAN, task, Succeeded((), ()))) == frozenset()
    assert (
        blobs_of(layout.encode_succeeded(CODEC, PLAN, task, Succeeded((("last", b"\xd8\x62" * 20),), ())))
        == frozenset()
    )


def test_an_extension_that_is_no_reference_is_a_corrupt_record() -> None:
    body = ormsgpack.packb([layout.FORMAT, [ormsgpack.Ext(5, b"x" * 16)]])
    with pytest.raises(CorruptRecordError):
        layout.open_checkpoint(body, "checkpoint 9")
