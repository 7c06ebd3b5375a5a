"""Exceptions are data: class, arguments, fields, attributes, notes, cause and context come back; frames do not."""

import builtins
import copy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pytest

from stepwell import errors
from stepwell.codec import Codec, Registry
from stepwell.codec.listed import listed_names
from stepwell.codec.registry import Entry
from stepwell.errors import UnknownTypeError, UnserializableValueError
from tests.pure.supported import caused, raised
from tests.pure.test_codec_sameness import same


class Declined(Exception):
    """Cannot be rebuilt by calling it with its args, as copying and pickling would."""

    def __init__(self, step: str, *, code: int) -> None:
        super().__init__(f"{step} declined")
        self.code = code


class Slotted(Exception):
    __slots__ = ("seen",)
    seen: Any


class Twice(KeyError, OSError):
    pass


@dataclass
class Told(Exception):
    code: int
    why: str = ""


class Many(ExceptionGroup[Exception]):
    def __new__(cls, *args: Any) -> "Many":
        raise AssertionError("nothing of the class is called")

    @classmethod
    def of(cls, *errors: Exception) -> "Many":
        return BaseExceptionGroup.__new__(cls, "many", list(errors))


class State(TypedDict):
    errors: list[Declined | Slotted | Twice | Told | Many | Exception]


CODEC = Codec(Registry.from_schemas(State))
BARE = Codec(Registry())

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "UnicodeDecodeError": ("utf-8", b"\xff", 0, 1, "why"),
    "UnicodeEncodeError": ("utf-8", "\ud800", 0, 1, "why"),
    "UnicodeTranslateError": ("text", 0, 1, "why"),
    "BlockingIOError": (11, "again", 5),
    "OSError": (2, "text", "name"),
    "SyntaxError": ("bad", ("file.py", 1, 2, "text", 1, 3)),
    "ExceptionGroup": ("group", [ValueError(1), ExceptionGroup("inner", (KeyError(2),))]),
    "BaseExceptionGroup": ("group", [SystemExit(1)]),
}


def made(kind: Any) -> BaseException:
    known = (arguments for name, arguments in ARGUMENTS.items() if issubclass(kind, getattr(builtins, name)))
    error: BaseException = kind(*next(known, ("text", (1,))))
    return error


BUILT_IN = [
    made(kind) for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)
]


def in_context() -> None:
    try:
        1 / 0
    except ZeroDivisionError:
        raise Declined("payment", code=7)  # noqa: B904


def suppressed() -> None:
    try:
        1 / 0
    except ZeroDivisionError:
        raise ValueError("hidden") from None


def unsuppressed() -> BaseException:
    error = ValueError("both are shown")
    error.__cause__ = KeyError(1)
    error.__suppress_context__ = False
    return error


def slotted() -> BaseException:
    error = Slotted("x")
    error.seen = (1,)
    return error


RAISED = [
    raised(caused),
    raised(in_context),
    raised(suppressed),
    unsuppressed(),
    slotted(),
    Twice("key"),
    Told(1, "why"),
    Many.of(ValueError(1), Declined("a", code=1)),
    raised(lambda: Path("/no/such/file").read_bytes()),
    raised(lambda: b"\xff".decode()),
    raised(lambda: "\ud800".encode()),
    raised(lambda: compile("1 +", "<text>", "eval")),
    raised(lambda: __import__("no_such_module")),
    raised(lambda: eval("no_such_name")),
    StopIteration((1, 2)),
    SystemExit(3),
    OSError(),
    OSError("only text"),
    ValueError("\0\ud800"),
]


@pytest.mark.parametrize("error", BUILT_IN, ids=repr)
def test_every_exception_of_python_comes_back_as_it_was(error: BaseException) -> None:
    assert same(BARE.copy([error]), [error])


@pytest.mark.parametrize("error", RAISED, ids=lambda error: f"{error!r}"[:30])
def test_INV_12_an_exception_keeps_arguments_fields_attributes_notes_cause_and_context(error: BaseException) -> None:
    copied = CODEC.copy({"errors": [error]})["errors"][0]
    assert same(copied, error)
    assert CODEC.canonical(copied) == CODEC.canonical(error)


def test_every_error_of_stepwell_comes_back_as_it_was() -> None:
    kinds = [kind for name in sorted(listed_names()) if (kind := getattr(errors, name.partition(":")[2], None))]
    assert len(kinds) > 90
    for kind in kinds:
        error = kind("text", thread_id="t", reason=("nested", {1}), command="c")
        copied = BARE.copy([error])[0]
        assert same(copied, error)
        assert copied.fields() == error.fields()


def test_the_traceback_and_the_object_of_a_missed_attribute_stay_behind() -> None:
    error = raised(lambda: object().missing)  # type: ignore[attr-defined]
    assert error.__traceback__ is not None
    copied = BARE.copy(error)
    assert (copied.__traceback__, copied.obj, copied.name, str(copied)) == (None, None, "missing", str(error))


def test_a_stored_exception_can_be_raised_again() -> None:
    stored = CODEC.copy(raised(in_context))
    with pytest.raises(Declined, match="payment declined") as caught:
        raise stored
    assert isinstance(caught.value.__context__, ZeroDivisionError)


def test_a_group_is_split_as_before() -> None:
    matched, rest = CODEC.copy(Many.of(ValueError(1), KeyError(2))).split(ValueError)
    assert [type(error) for group in (matched, rest) for error in group.exceptions] == [ValueError, KeyError]


def test_an_exception_that_python_cannot_copy_is_stored_all_the_same() -> None:
    error = raised(in_context)
    with pytest.raises(TypeError):
        copy.copy(error)
    assert CODEC.copy(error).code == 7


@pytest.mark.parametrize("link", ["__cause__", "__context__"])
def test_an_unlisted_exception_is_refused_wherever_it_is_linked(link: str) -> None:
    class Unlisted(Exception):
        pass

    error = ValueError("outer")
    setattr(error, link, Unlisted("inner"))
    with pytest.raises(UnserializableValueError, match="Unlisted") as caught:
        CODEC.dumps({"errors": [error]})
    assert caught.value.fields()["path"] == f"errors[0].{link}"


def test_an_argument_that_is_no_data_is_refused_with_its_path() -> None:
    with pytest.raises(UnserializableValueError) as caught:
        BARE.dumps({"error": ValueError("x", [object()])})
    assert caught.value.fields()["path"] == "error.args[1][0]"


def test_exceptions_linked_in_a_circle_are_refused() -> None:
    one, two = ValueError(1), KeyError(2)
    one.__context__, two.__context__ = two, one
    with pytest.raises(UnserializableValueError, match="contains itself") as caught:
        BARE.dumps([one])
    assert caught.value.fields()["path"] == "[0].__context__.__context__"


def test_a_group_whose_arguments_were_replaced_is_refused() -> None:
    group = ExceptionGroup("g", [ValueError(1)])
    group.args = ("g", [ValueError(1)])
    with pytest.raises(UnserializableValueError, match="no longer those it was made with"):
        BARE.dumps(group)


def test_an_exception_class_that_is_gone_or_is_another_fails_with_its_path() -> None:
    class Failure(KeyError):
        pass

    class Plain:
        pass

    def named(cls: type[Any]) -> Codec:
        return Codec(Registry((Entry("m:Failure", cls),)))

    data = named(Failure).dumps({"error": Failure("a", 1)})
    with pytest.raises(UnknownTypeError, match="m:Failure"):
        BARE.loads(data)
    for other in (Plain, type("Text", (str,), {})):
        with pytest.raises(UnknownTypeError, match="the built-in type it is built on is another") as caught:
            named(other).loads(data)
        assert caught.value.fields()["path"] == "error"
    assert Codec(Registry(), lambda name, stored: stored).loads(data) == {"error": {"base": {"args": ["a", 1]}}}


def test_a_class_that_lost_its_built_in_base_does_not_lose_the_content_in_silence() -> None:
    text, plain = type("Label", (str,), {}), type("Label", (), {})
    data = Codec(Registry((Entry("m:Label", text),))).dumps([text("content")])
    with pytest.raises(UnknownTypeError, match="the built-in type it is built on is another"):
        Codec(Registry((Entry("m:Label", plain),))).loads(data)
    data = Codec(Registry((Entry("m:Label", plain),))).dumps([plain()])
    with pytest.raises(UnknownTypeError, match="the built-in type it is built on is another"):
        Codec(Registry((Entry("m:Label", text),))).loads(data)


def test_a_schema_lists_the_exceptions_it_names() -> None:
    assert set(Registry.from_schemas(State)) == {Declined, Slotted, Twice, Told, Many}


def test_an_exception_is_read_where_the_module_that_has_it_was_not_imported() -> None:
    import json

    data = BARE.dumps([raised(lambda: json.loads("{"))])
    program = (
        "import sys; from stepwell.codec import *; print(Codec(Registry()).loads(sys.stdin.buffer.read())[0].lineno)"
    )
    done = subprocess.run([sys.executable, "-c", program], input=data, capture_output=True, check=True)
    assert done.stdout.split() == [b"1"]
