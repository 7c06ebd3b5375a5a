"""Which namespaces a listing names, out of those that hold items."""

from __future__ import annotations

from collections.abc import Iterable

from stepwell.errors import InvalidItemError
from stepwell.items.names import checked_labels
from stepwell.items.ops import ListNamespacesOp, MatchCondition, Namespace


def check_listing(op: ListNamespacesOp) -> None:
    """Refuse, before anything is read, a listing that could not be asked."""
    check_window(op.limit, op.offset)
    if op.max_depth is not None and op.max_depth < 1:
        raise InvalidItemError(reason=f"max_depth is at least 1, not {op.max_depth}")
    for condition in op.match_conditions or ():
        if condition.match_type not in ("prefix", "suffix"):
            raise InvalidItemError(reason=f"match_type is prefix or suffix, not {condition.match_type!r}")
        checked_labels(condition.path)


def check_window(limit: int, offset: int) -> None:
    """Refuse a window that could only be misread."""
    for name, number in (("limit", limit), ("offset", offset)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise InvalidItemError(reason=f"{name} is a number from 0 on, not {number!r}")


def listed(op: ListNamespacesOp, namespaces: Iterable[Namespace]) -> list[Namespace]:
    """Return those that match, cut to the depth asked for, each once, sorted, and of them the window."""
    conditions = op.match_conditions or ()
    found = {each[: op.max_depth] for each in namespaces if all(_fits(condition, each) for condition in conditions)}
    return sorted(found)[op.offset : op.offset + op.limit]


def _fits(condition: MatchCondition, namespace: Namespace) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(want in ("*", label) for label, want in zip(part, path, strict=True))
