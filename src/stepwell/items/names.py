"""What a namespace and a key may be, and the text a namespace is stored as.

Labels hold no period, so labels joined by periods are one text for each namespace and no two share it.
"""

from __future__ import annotations

from typing import Any

from stepwell.errors import InvalidItemError, InvalidNamespaceError
from stepwell.ids import is_holdable
from stepwell.items.ops import Namespace

RESERVED = "langgraph"
"""First label of no namespace that is written: LangGraph keeps it to itself."""


def checked_labels(given: Any) -> Namespace:
    """Return a namespace, or a prefix of one, that may be empty. InvalidNamespaceError names the label at fault."""
    if not isinstance(given, tuple | list):
        raise _invalid(given, f"it is a {type(given).__name__}, not a tuple of labels")
    for label in given:
        if not isinstance(label, str):
            raise _invalid(given, f"label {label!r} is a {type(label).__name__}, not a str")
        if not label:
            raise _invalid(given, "a label is empty")
        if "." in label:
            raise _invalid(given, f"label {label!r} holds a period")
        if not is_holdable(label):
            raise _invalid(given, f"label {label!r} holds a NUL or is not valid Unicode")
    return tuple(given)


def checked_namespace(given: Any) -> Namespace:
    """Return a namespace that items may be written to."""
    namespace = checked_labels(given)
    if not namespace:
        raise _invalid(given, "it has no label")
    if namespace[0] == RESERVED:
        raise _invalid(given, f"its first label is {RESERVED!r}, which is reserved")
    return namespace


def checked_key(given: Any) -> str:
    """Return a key as text, as LangGraph takes it."""
    key = str(given)
    if not is_holdable(key):
        raise InvalidItemError(reason=f"the key {key!r} holds a NUL or is not valid Unicode")
    return key


def joined(namespace: Namespace) -> str:
    """Return the text a namespace is stored as."""
    return ".".join(namespace)


def split(text: str) -> Namespace:
    """Return the namespace that a stored text is."""
    return tuple(text.split("."))


def is_below(namespace: str, prefix: str) -> bool:
    """Tell whether a stored namespace is this one or lies below it."""
    return not prefix or namespace == prefix or namespace.startswith(f"{prefix}.")


def _invalid(given: Any, reason: str) -> InvalidNamespaceError:
    return InvalidNamespaceError(namespace=given, reason=reason)
