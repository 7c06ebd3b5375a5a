"""What becomes of commits: each is sorted into a section and condensed to one line, then all are laid out as Markdown.

Text in, text out: no file, no git, no clock. The rule: the notes depend on the commits alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypedDict

from stepwell.demo.commits import Commit

MAX_LINE = 88


class Entry(TypedDict):
    """A condensed commit, ready for its section."""

    number: int
    ref: str
    section: str
    line: str


# In the order of the notes. A section's words are looked for at the start of a subject first, then anywhere in it.
SECTIONS: dict[str, str] = {
    "Breaking changes": "breaking",
    "Features": "feat feature add support allow introduce provide implement new enable",
    "Fixes": "fix fixes fixed bugfix hotfix correct resolve avoid revert prevent handle silence",
    "Performance": "perf speed faster optimize optimise cache",
    "Removals and deprecations": "remove drop deprecate delete removal deprecation",
    "Documentation": "docs doc document readme documentation changelog",
    "Tests": "test tests testing functional",
    "Housekeeping": (
        "chore ci build style refactor tox zuul pre-commit bump pin move rename inline cleanup convert use dependencies"
    ),
}
OTHER = "Other changes"

_CONVENTIONAL = re.compile(
    r"(?P<kind>[A-Za-z][\w-]*(?: tests)?)(?:\((?P<scope>[^)]*)\))?(?P<breaking>!)?:\s+(?P<rest>\S.*)"
)
_WORD = re.compile(r"[a-z][a-z-]*")
_TRAILING_REFERENCE = re.compile(r"\s*\((?:#|GH-)\d+\)$")
_SECTION_OF_WORD = {word: section for section, words in SECTIONS.items() for word in words.split()}


def condense(commit: Commit) -> Entry:
    """Sort `commit` into a section and shorten its subject to one line."""
    subject = " ".join(commit["subject"].split())
    return Entry(number=commit["number"], ref=commit["ref"], section=classify(subject), line=_one_line(subject))


def classify(subject: str) -> str:
    """Return the section of a subject line: by its conventional prefix, else its first telling word."""
    prefix = _CONVENTIONAL.match(subject)
    if prefix and prefix["breaking"]:
        return "Breaking changes"
    words = _WORD.findall(subject.lower())
    return next((_SECTION_OF_WORD[word] for word in words if word in _SECTION_OF_WORD), OTHER)


def render(entries: Sequence[Entry]) -> str:
    """Lay the entries out as Markdown, section by section, in the order of the history."""
    blocks = [f"# Release notes\n\n{_summary(entries)}\n"]
    for section in (*SECTIONS, OTHER):
        lines = _lines(entry for entry in entries if entry["section"] == section)
        if lines:
            blocks.append(f"## {section}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(blocks)


def _one_line(subject: str) -> str:
    subject = _TRAILING_REFERENCE.sub("", subject).rstrip(".")
    prefix = _CONVENTIONAL.match(subject)
    if prefix:
        scope = prefix["scope"] or ("" if prefix["kind"].lower() in _SECTION_OF_WORD else prefix["kind"])
        subject = f"{scope}: {prefix['rest']}" if scope else prefix["rest"]
    if len(subject) > MAX_LINE:
        subject = subject[: MAX_LINE - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
    return subject[:1].upper() + subject[1:]


def _lines(entries: Iterable[Entry]) -> list[str]:
    return [f"- {entry['line']} ({entry['ref']})" for entry in sorted(entries, key=lambda entry: entry["number"])]


def _summary(entries: Sequence[Entry]) -> str:
    if not entries:
        return "No changes."
    ordered = sorted(entries, key=lambda entry: entry["number"])
    count = "1 change" if len(ordered) == 1 else f"{len(ordered)} changes"
    return f"{count}, from {ordered[-1]['ref']} to {ordered[0]['ref']}."
