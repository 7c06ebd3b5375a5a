"""Run LangGraph's own tests against Stepwell, and compare what fails with what is known to: `make compat`.

    python -m tests.compat.run FOLDER [--only TEXT] [--empty]

FOLDER holds LangGraph's unpacked source distribution and takes everything that is made here; nothing of it comes into
the project. The exit code is 0 where exactly the functions in `departures.txt` and `later.txt` fail; a whole run then
writes `counts.json`, which the README is held to. `report.json` in FOLDER says of each function what became of it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.compat import listing
from tests.compat.package import write_package
from tests.compat.slicing import slice_tests

HELPERS = ("agents", "any_int", "any_str", "fake_chat", "fake_tracer", "memory_assert", "messages")
SECONDS_PER_FILE = 600


@dataclass
class Cases:
    """What became of a function's cases."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    first: str = field(default="did not run")

    @property
    def all_passed(self) -> bool:
        return self.passed > 0 and self.failed == 0


def prepare(theirs: Path, work: Path, chosen: Mapping[str, list[str]], home: str | None) -> None:
    """Lay the sliced tests, their helpers and the package in front of them out in `work`, afresh."""
    shutil.rmtree(work, ignore_errors=True)
    tests = work / "tests"
    tests.mkdir(parents=True)
    (tests / "__init__.py").touch()
    (work / "pytest.ini").write_text("[pytest]\nfilterwarnings = ignore::pytest.PytestUnraisableExceptionWarning\n")
    shutil.copy(listing.HERE / "fixtures.py", tests / "conftest.py")
    shutil.copy(listing.HERE / "missing.py", tests / "missing.py")
    shutil.copytree(theirs / "__snapshots__", tests / "__snapshots__")
    for helper in HELPERS:
        shutil.copy(theirs / f"{helper}.py", tests)
    imports: set[tuple[str, str | None]] = set()
    for file, names in chosen.items():
        cut = slice_tests(theirs / file, names)
        (tests / file).write_text(cut.source)
        imports |= cut.imports
    write_package(imports, work / "package", home)


def run_file(work: Path, file: str, names: list[str]) -> dict[str, Cases]:
    """Run a sliced file in a process of its own; return function → cases, with the log beside the file."""
    package = str(work / "package")
    environment = {**os.environ, "PYTHONPATH": package, "COMPAT_PACKAGE": package, "LANGSMITH_TRACING": "false"}
    report = work / f"{file}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command += [f"tests/{file}::{name}" for name in names]
    found = {f"{file}::{name}": Cases() for name in names}
    with (work / f"{file}.log").open("w") as log:
        try:
            subprocess.run(
                command, cwd=work, env=environment, timeout=SECONDS_PER_FILE, stdout=log, stderr=log, check=False
            )
        except subprocess.TimeoutExpired:
            return found
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        cases = found[f"{file}::{case.get('name', '').partition('[')[0]}"]
        trouble = next((part for kind in ("failure", "error") if (part := case.find(kind)) is not None), None)
        if trouble is not None:
            cases.first = " ".join(trouble.get("message", "").split()) if not cases.failed else cases.first
            cases.failed += 1
        elif case.find("skipped") is not None:
            cases.skipped += 1
        else:
            cases.passed += 1
    return found


def compare(cases: Mapping[str, Cases]) -> tuple[dict[str, int], list[str]]:
    """Return the counts, and a line for each function that is not as the lists say."""
    reasons = {**listing.read(listing.DEPARTURES), **listing.read(listing.LATER)}
    surprises = [
        f"{name} fails: {one.first}" for name, one in cases.items() if not one.all_passed and name not in reasons
    ]
    surprises += [
        f"{name} passes, yet is listed: {reasons[name]}" for name in reasons if name in cases and cases[name].all_passed
    ]
    counts = {
        "functions": len(cases),
        "pass": sum(one.all_passed for one in cases.values()),
        "depart": len(cases.keys() & listing.read(listing.DEPARTURES).keys()),
        "later": len(cases.keys() & listing.read(listing.LATER).keys()),
    }
    return counts, surprises


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="LangGraph's unpacked source distribution")
    parser.add_argument("--only", default="", metavar="TEXT", help="run the functions whose name holds TEXT")
    parser.add_argument("--empty", action="store_true", help="run against a package without names: nothing may pass")
    asked = parser.parse_args()
    listed = listing.read(listing.LISTED)
    chosen = listing.by_file({name: "" for name in listed if asked.only in name})
    folder = asked.folder.resolve()
    work = folder / "run"
    prepare(folder / "tests", work, chosen, None if asked.empty else "stepwell")
    cases: dict[str, Cases] = {}
    for file, names in chosen.items():
        found = run_file(work, file, names)
        cases |= found
        print(
            f"{file:32} {sum(one.all_passed for one in found.values()):3} of {len(found):3} functions pass", flush=True
        )
    (folder / "report.json").write_text(json.dumps({name: vars(one) for name, one in cases.items()}, indent=1))
    if asked.empty:
        return int(any(one.all_passed for one in cases.values()))
    counts, surprises = compare(cases)
    print(*surprises, json.dumps(counts), sep="\n")
    if not surprises and len(cases) == len(listed):
        listing.COUNTS.write_text(json.dumps(counts, indent=2) + "\n")
    return int(bool(surprises))


if __name__ == "__main__":
    sys.exit(main())
