"""What a later release has written is refused as that, and never told as damage."""

from collections.abc import Callable
from typing import Any

import ormsgpack
import pytest

from stepwell.codec import Codec, Registry
from stepwell.errors import CorruptRecordError, NewerFormatError, UnsupportedStorageError
from stepwell.superstep import body
from stepwell.superstep.effects.layout import decode_ended, decode_intent
from stepwell.superstep.effects.resolution import decode_resolved
from stepwell.superstep.formats import FORMAT
from stepwell.superstep.origin import decode_origin
from stepwell.superstep.step_body import decode_step
from stepwell.superstep.waiting import decode_arrived, decode_wait

CODEC = Codec(Registry())
READERS: dict[str, Callable[[bytes, str], Any]] = {
    "checkpoint": body.open_checkpoint,
    "succeeded": lambda data, name: body.decode_succeeded(CODEC, data, name),
    "failed": lambda data, name: body.decode_failed(CODEC, data, name),
    "interrupted": lambda data, name: body.decode_interrupted(CODEC, data, name),
    "answer": lambda data, name: body.decode_answer(CODEC, data, name),
    "attempt": body.decode_attempt,
    "wait": lambda data, name: decode_wait(CODEC, data, name),
    "arrived": lambda data, name: decode_arrived(CODEC, data, name),
    "step": decode_step,
    "intent": decode_intent,
    "ended": decode_ended,
    "resolved": decode_resolved,
    "origin": decode_origin,
}


@pytest.mark.parametrize("kind", READERS)
def test_a_body_of_a_newer_format_is_refused_as_such_and_not_as_damage(kind: str) -> None:
    told = rf"format {FORMAT + 1}; this release reads up to {FORMAT}\. It is not damaged"
    with pytest.raises(NewerFormatError, match=told) as caught:
        READERS[kind](ormsgpack.packb([FORMAT + 1, {"what": "nobody knows"}]), "record 7 of thread t")
    assert isinstance(caught.value, UnsupportedStorageError)
    assert caught.value.fields() == {"record": "record 7 of thread t", "found": FORMAT + 1, "known": FORMAT}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    "data", [b"", b"\xc1", ormsgpack.packb(7), ormsgpack.packb([0]), ormsgpack.packb([True]), ormsgpack.packb([FORMAT])]
)
def test_what_no_release_ever_wrote_is_damage(kind: str, data: bytes) -> None:
    with pytest.raises(CorruptRecordError):
        READERS[kind](data, "record 7 of thread t")


def test_a_value_of_a_newer_format_is_refused_as_such() -> None:
    data = bytearray(CODEC.dumps({"n": 1}, "n"))
    data[-1] += 1
    with pytest.raises(NewerFormatError, match="The n is written in format 2"):
        CODEC.loads(bytes(data), "n")
    data[-1] = 0
    with pytest.raises(CorruptRecordError):
        CODEC.loads(bytes(data), "n")
    with pytest.raises(CorruptRecordError):
        CODEC.loads(bytes(data[1:]), "n")
