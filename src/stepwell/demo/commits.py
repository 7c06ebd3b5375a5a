"""Where the commits come from: `git log` of a repository, or a log that ships with the demo.

Not here: what is made of a commit (`notes.py`). The rule: the same history gives the same list, newest first.
"""

from __future__ import annotations

import subprocess
from importlib.resources import files
from pathlib import Path
from typing import TypedDict

MAX_COMMITS = 200
_GIT_FORMAT = "--format=%h%x09%s"


class Commit(TypedDict):
    """One commit: its place in the history (1 is the newest), what names it, and its subject line."""

    number: int
    ref: str
    subject: str


def read_commits(repo: str | None) -> list[Commit]:
    """Return the newest commits of the git repository at `repo`; without any history there, those of the sample log."""
    log = _git_log(repo) if repo is not None else ""
    return parse_log(log or sample_log())


def sample_log() -> str:
    """Return the log that ships with the demo: a stretch of a real project's history."""
    return files("stepwell.demo").joinpath("sample_log.txt").read_text(encoding="utf-8")


def parse_log(log: str) -> list[Commit]:
    """Read lines of `ref<TAB>subject`. Empty lines and lines that open with `#` are comments."""
    lines = (line for line in log.splitlines() if line.strip() and not line.startswith("#"))
    pairs = (line.partition("\t") for line in lines)
    return [Commit(number=n, ref=ref, subject=subject.strip()) for n, (ref, _, subject) in enumerate(pairs, start=1)]


def _git_log(repo: str) -> str:
    command = ["git", "-C", str(Path(repo)), "log", "--no-merges", f"--max-count={MAX_COMMITS}", _GIT_FORMAT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", errors="replace", check=False)
    except OSError:  # no git on this machine
        return ""
    return done.stdout if done.returncode == 0 else ""
