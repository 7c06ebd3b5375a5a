"""Write a package called `langgraph` that hands out Stepwell's names, under the modules the sliced tests import from.

A name that Stepwell does not have is left out, so that only the tests which use it fail. Private modules are left out
whole: they are no part of what Stepwell keeps.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

FROM_FIXTURES = {
    ("langgraph.cache.memory", "InMemoryCache"),
    ("langgraph.cache.sqlite", "SqliteCache"),
    ("langgraph.checkpoint.memory", "InMemorySaver"),
    ("langgraph.checkpoint.sqlite", "SqliteSaver"),
    ("langgraph.checkpoint.sqlite.aio", "AsyncSqliteSaver"),
    ("langgraph.store.memory", "InMemoryStore"),
}
"""What `fixtures.py` looks up."""


def write_package(imports: Iterable[tuple[str, str | None]], root: Path, home: str | None) -> None:
    """Write the package below `root`, in place of what is there. Its names come from the module `home`, if any."""
    names: dict[str, set[str]] = {}
    for module, name in {*imports, *FROM_FIXTURES}:
        parts = module.split(".")
        if parts[0] == "langgraph" and not any(part.startswith("_") for part in parts):
            names.setdefault(module, set()).update({name} if name else ())
    shutil.rmtree(root, ignore_errors=True)
    for module in names:
        folder = root
        for part in module.split("."):
            folder /= part
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "__init__.py").touch()
        folder.joinpath("__init__.py").write_text(_module(sorted(names[module]), home))


def _module(names: Iterable[str], home: str | None) -> str:
    if home is None:
        return ""
    taken = "".join(f"if hasattr(home, {name!r}):\n    {name} = home.{name}\n" for name in names)
    return f"import {home} as home\n\n{taken}"
