"""What a checkpoint needs of other rows is said in one place, for whoever keeps, copies, checks or deletes rows."""

from typing import Any

import ormsgpack
import pytest

from stepwell.errors import CorruptRecordError
from stepwell.superstep import body as layout
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.references import References, references
from stepwell.superstep.state import Base, State
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
    body = ormsgpack.packb([layout.FORMAT, outcomes, channels, [], {}, [], {}, [], []])
    with pytest.raises(CorruptRecordError), layout.reading("checkpoint 9"):
        references(_opened(body), 9)
