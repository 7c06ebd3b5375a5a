"""Classes that need no registration: those of the standard library that are data, the errors of this package, and
langchain-core's messages.

Here: their names, and the entries these lead to. Not here: types with an extension of their own (`scalars`,
`containers`, `arrays`). Rule kept: to write an instance nothing is imported; a record can cause the import of the
modules in `_LISTED`, and reaches no other name in them.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from types import ModuleType
from typing import Any, Final

from stepwell import errors
from stepwell.codec.registry import Entry

_SPEAKERS: Final = ("AIMessage", "HumanMessage", "SystemMessage", "ToolMessage", "FunctionMessage", "ChatMessage")
_PARSED: Final = ("DefragResult", "ParseResult", "SplitResult")


def _errors_of(module: ModuleType, kind: type[BaseException]) -> set[str]:
    return {name for name, found in vars(module).items() if isinstance(found, type) and issubclass(found, kind)}


_LISTED: Final[dict[str, set[str]]] = {
    "array": {"array"},
    "asyncio.exceptions": {"CancelledError", "InvalidStateError"},
    "builtins": _errors_of(builtins, BaseException),
    "calendar": {"Day", "Month"},
    "collections": {"UserDict", "UserList", "UserString"},
    "decimal": {"DecimalTuple"},
    "http": {"HTTPMethod", "HTTPStatus"},
    "json.decoder": {"JSONDecodeError"},
    "langchain_core.documents": {"Document"},
    "langchain_core.messages": {*_SPEAKERS, *(f"{speaker}Chunk" for speaker in _SPEAKERS), "RemoveMessage"},
    "re": {"RegexFlag"},
    "signal": {"Signals"},
    "socket": {"gaierror", "herror"},
    "stepwell.errors": _errors_of(errors, errors.StepwellError),
    "stepwell.graph.message_shapes": {"PlainRemoveMessage"},
    "subprocess": {"CalledProcessError", "TimeoutExpired"},
    "time": {"struct_time"},
    "types": {"SimpleNamespace"},
    "urllib.parse": {*_PARSED, *(f"{name}Bytes" for name in _PARSED)},
    "uuid": {"SafeUUID"},
}


def listed_entry(cls: type[Any]) -> Entry | None:
    """Return the entry of a class in `_LISTED`, recognised in the module that is already imported."""
    for module, names in _LISTED.items():
        if cls.__name__ in names and getattr(sys.modules.get(module), cls.__name__, None) is cls:
            return Entry(f"{module}:{cls.__name__}", cls)
    return None


def listed_entry_by_name(name: str) -> Entry | None:
    """Return the entry a stored name of `_LISTED` leads to, importing its module if that has not happened."""
    module, _, member = name.partition(":")
    if member not in _LISTED.get(module, ()):
        return None
    try:
        cls = getattr(importlib.import_module(module), member, None)
    except ImportError:
        return None
    return Entry(name, cls) if isinstance(cls, type) else None


def listed_names() -> frozenset[str]:
    """Return every name of `_LISTED`, as records hold it."""
    return frozenset(f"{module}:{name}" for module, names in _LISTED.items() for name in names)
