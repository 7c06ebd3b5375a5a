"""The house rules that a program can check: what every file of the project looks like."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "stepwell"
MODULES = sorted(PACKAGE.rglob("*.py"))

MAX_LINES = 400
VAGUE_NAMES = {"utils", "helpers", "common", "base", "core", "manager", "handler", "impl"}

# Joined from halves, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
REGISTRY_HOSTS = ["pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "npmjs" + ".com", "yarnpkg" + ".com"]
INVARIANT = re.compile(r"\bINV-\d+\b")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def project_texts() -> dict[str, str]:
    """Return every text file of the project that is tracked, or would be with the next commit."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    texts = {}
    for name in sorted(set(filter(None, listing.split("\0")))):
        path = ROOT / name
        content = path.read_bytes() if path.is_file() else b"\0"
        if b"\0" not in content:
            texts[name] = content.decode()
    return texts


def files_with(needle: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in project_texts().items()
        for number, line in enumerate(text.splitlines(), start=1)
        if needle.search(line)
    ]


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_module_opens_by_saying_what_lives_in_it(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text())), f"{name_of(module)} has no docstring"


def test_no_source_file_outgrows_one_job() -> None:
    sources = [path for path in PACKAGE.rglob("*") if path.suffix in {".py", ".pyi", ".sql"}]
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in sources}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_names_of_modules_say_what_is_in_them() -> None:
    names = [part for path in MODULES for part in path.relative_to(PACKAGE).with_suffix("").parts]
    assert VAGUE_NAMES.intersection(name.strip("_") for name in names) == set()


def test_nothing_is_left_unfinished() -> None:
    assert files_with(UNFINISHED) == []


def test_no_file_names_a_package_registry() -> None:
    assert files_with(re.compile("|".join(map(re.escape, REGISTRY_HOSTS)))) == []


def test_no_file_names_the_home_it_was_written_in() -> None:
    assert files_with(re.compile(re.escape(f"{Path.home()}/"))) == []


def test_every_invariant_is_named_by_a_test() -> None:
    promised = set(INVARIANT.findall((ROOT / "docs" / "invariants.md").read_text()))
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert promised, "docs/invariants.md promises nothing"
    assert promised - set(INVARIANT.findall(tests)) == set()


def test_every_decision_has_a_number_of_its_own() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    numbers = [path.name[:4] for path in decisions]
    assert len(set(numbers)) == len(numbers)
    assert [path.name for path in decisions if not path.read_text().startswith(f"# {path.name[:4]}")][1:] == []
