"""Code written for LangGraph, moved over: its import lines change, nothing else does."""

import ast
import inspect
import re
from collections.abc import Mapping
from typing import Any

IMPORT = re.compile(r"^(\s*)from langgraph(?:\.\w+)* import ", re.M)


def moved(source: str) -> str:
    """Return the source with its names taken from Stepwell."""
    return IMPORT.sub(r"\1from stepwell import ", source)


async def run(source: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Run a moved sample as a notebook would, `await` at its top level included; return its names."""
    names: dict[str, Any] = {"__name__": "sample", **(given or {})}
    code = compile(moved(source), "<sample>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    result = eval(code, names)
    if inspect.isawaitable(result):
        await result
    return names
