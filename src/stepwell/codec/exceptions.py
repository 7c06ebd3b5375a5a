"""Exceptions as data.

Here: what an exception carries besides its attributes: its arguments, the fields of Python's own classes, cause and
context. Not here: attributes and notes (`objects`), which classes are allowed (`registry`, `listed`). Rule kept: what
belongs to a process is no part of the value: the traceback, which holds frames, and the object an AttributeError was
looked up on.
"""

from __future__ import annotations

from functools import cache
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, Final

from stepwell.codec.containers import expect
from stepwell.codec.kinds import Malformed, Refused

_HEAP_TYPE: Final = 1 << 9
_OF_ALL: Final[dict[str, Any]] = {name: vars(BaseException)[name] for name in ("args", "__cause__", "__context__")}
_SUPPRESS: Final = "__suppress_context__"
_LEFT_OUT: Final = {"obj", "message", "exceptions"}  # the last two are the arguments of a group


def take(error: BaseException) -> dict[str, Any]:
    """Return what is to be stored. Raises `Refused` for a group that could not be made anew."""
    content = parts(error)
    if isinstance(error, BaseExceptionGroup) and not _is_as_made(error, content["args"]):
        raise Refused(": its args are no longer those it was made with")
    return content


def parts(error: BaseException) -> dict[str, Any]:
    """Return what is set of the arguments, the fields and the exceptions it is linked to."""
    content = {}
    for name, field in _fields(native_of(type(error))).items():
        try:
            item = field.__get__(error)
        except AttributeError:
            continue
        if item is not None:
            content[name] = item
    content["args"] = list(content["args"])
    if error.__suppress_context__:
        content[_SUPPRESS] = True
    return content


def make(cls: type[Any], content: Any) -> Any:
    """Rebuild an exception without running any code of its class."""
    native: Any = native_of(cls)
    fields = _fields(native)
    args = tuple(expect(expect(content, dict)["args"], list))
    made = native.__new__(cls, *args) if native is BaseExceptionGroup else native.__new__(cls)
    for name, item in content.items():
        if name in fields:
            fields[name].__set__(made, args if name == "args" else item)
        elif name != _SUPPRESS:
            raise Malformed(f"an exception has no field {name!r}")
    made.__suppress_context__ = content.get(_SUPPRESS, False)  # a cause has set it
    return made


def empty(cls: type[Any]) -> dict[str, Any]:
    """Return content to try a class with."""
    return {"args": ["", [Exception()]] if native_of(cls) is BaseExceptionGroup else []}


def native_of(cls: Any) -> Any:
    """Return the class of Python's own that decides how an instance lies in memory."""
    while cls.__flags__ & _HEAP_TYPE:
        cls = cls.__base__
    return cls


@cache
def _fields(native: Any) -> dict[str, Any]:
    """Return the fields of Python's own exceptions that an instance has, with what reads and writes them."""
    fields = dict(_OF_ALL)
    for base in native.__mro__[: native.__mro__.index(BaseException)]:
        kinds = (MemberDescriptorType, GetSetDescriptorType)
        fields |= {name: field for name, field in vars(base).items() if isinstance(field, kinds)}
    return {name: field for name, field in fields.items() if name not in _LEFT_OUT}


def _is_as_made(group: BaseExceptionGroup[Any], args: list[Any]) -> bool:
    inside = group.exceptions
    if len(args) != 2 or args[0] != group.message or not isinstance(args[1], list | tuple):
        return False
    return len(args[1]) == len(inside) and all(one is two for one, two in zip(args[1], inside, strict=True))
