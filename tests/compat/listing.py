"""The lists of test functions: which are run, and which of them are known to fail and why.

A line is `file.py::function`; behind ` # ` stands the reason, which a list of exceptions must give for each.
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
LISTED = HERE / "listed.txt"
DEPARTURES = HERE / "departures.txt"
LATER = HERE / "later.txt"
COUNTS = HERE / "counts.json"


def read(path: Path) -> dict[str, str]:
    """Return function → reason, in the order of the file. ValueError where a line is neither that nor a comment."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        function, _, reason = (part.strip() for part in line.partition("#"))
        if not function:
            continue
        if "::" not in function or function in found:
            raise ValueError(f"{path.name}:{number}: not a new `file.py::function`: {function}")
        found[function] = reason
    return found


def by_file(functions: dict[str, str]) -> dict[str, list[str]]:
    """Return file → the functions in it."""
    files: dict[str, list[str]] = {}
    for function in functions:
        file, _, name = function.partition("::")
        files.setdefault(file, []).append(name)
    return files
