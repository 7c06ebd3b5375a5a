"""Instances of attrs classes come back as they were, in another process too; no converter and no validator runs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from stepwell.codec import Codec, Registry
from tests.pure.test_codec_sameness import same


def refuse(*_: Any) -> Any:
    raise AssertionError("neither constructor nor setter runs at the load")


@attrs.define
class Slotted:
    x: Any
    _hidden: int = 2
    late: int = attrs.field(init=False)
    made: list[int] = attrs.field(factory=list)


@attrs.frozen
class Frozen:
    x: Any
    double: int = attrs.field(init=False, default=attrs.Factory(lambda self: self.x * 2, takes_self=True))


@attrs.define(slots=False)
class Open:
    x: Any


@attrs.define
class Derived(Slotted):
    more: str = ""


class Undecorated(Open):
    pass


@attrs.define(kw_only=True, order=True)
class Converted:
    number: int = attrs.field(converter=int, validator=attrs.validators.gt(0), on_setattr=attrs.setters.validate)


@attrs.define
class Failure(Exception):
    code: int


@attrs.frozen(cache_hash=True)
class Cached:
    name: str


@attrs.frozen(cache_hash=True, slots=False)
class CachedOpen:
    name: str


TYPES = (Slotted, Frozen, Open, Derived, Undecorated, Converted, Failure, Cached, CachedOpen)
CODEC = Codec(Registry().with_types(*TYPES))


def late(value: Slotted) -> Slotted:
    value.late = 5
    return value


def noted() -> Open:
    value = Open(1)
    value.note = (1, 2)  # type: ignore[attr-defined]
    return value


@pytest.mark.parametrize(
    "value",
    [
        late(Slotted((1,), 3, [1])),
        late(Derived(1, more="m")),
        Frozen(2),
        Open({"a": 1}),
        noted(),
        Undecorated(1),
        Converted(number="7"),
        Failure(3),
        Cached("n"),
        CachedOpen("n"),
    ],
    ids=repr,
)
def test_attrs_classes_come_back(value: Any) -> None:
    assert same(CODEC.copy([(value,)]), [(value,)])


def test_an_attribute_that_was_never_set_stays_unset() -> None:
    copied = CODEC.copy(Slotted(1))
    assert (copied.x, hasattr(copied, "late")) == (1, False)


def test_a_subclass_of_an_attrs_class_is_reached_by_a_schema() -> None:
    assert set(Registry.from_schemas(Undecorated | Derived)) == {Undecorated, Derived}


def test_nothing_the_class_defines_runs_at_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    data = CODEC.dumps([Converted(number=7), Frozen(2)])
    for kind in (Converted, Frozen):
        for method in ("__init__", "__setattr__"):
            monkeypatch.setattr(kind, method, refuse)
    assert [value.__class__ for value in CODEC.loads(data)] == [Converted, Frozen]


PROGRAM = """
import sys
import attrs
from stepwell.codec import Codec, Registry

@attrs.frozen(cache_hash=True, slots=SLOTS)
class Key:
    name: str

codec = Codec(Registry().with_types(Key))
if sys.argv[1] == "write":
    key = Key("a")
    hash(key)
    sys.stdout.buffer.write(codec.dumps({"seen": {key}, "key": key}))
else:
    found = codec.loads(sys.stdin.buffer.read())
    print(Key("a") in found["seen"], found["key"] in {Key("a")}, hash(found["key"]) == hash(Key("a")))
"""


@pytest.mark.parametrize("slots", [True, False])
def test_a_cached_hash_is_not_taken_to_another_process(slots: bool, tmp_path: Path) -> None:
    """Texts hash differently there, so an instance that kept it would never be found."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("SLOTS", str(slots)))

    def run(mode: str, seed: str, stdin: bytes = b"") -> bytes:
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        command = [sys.executable, str(program), mode]
        return subprocess.run(command, input=stdin, env=environment, capture_output=True, check=True).stdout

    assert run("read", "2", run("write", "1")).split() == [b"True"] * 3
