"""The demo, run as a user runs it: a real repository, real processes, real kills."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepwell import SqliteSaver
from stepwell.demo.commits import Commit, parse_log, read_commits, sample_log
from stepwell.demo.driver import run_demo
from stepwell.demo.notes import classify, condense, render
from stepwell.demo.publication import publish_once
from stepwell.demo.release_notes import build
from stepwell.demo.screen import PlainConsole, rows_of
from stepwell.demo.step_log import Line, StepLog, Tally, read_lines, tally

SUBJECTS = [
    "Start the project",
    "feat: read a config file",
    "fix(parser): keep trailing commas (#12)",
    "docs: explain the config",
    "feat!: rename the command",
    "test: cover the parser",
    "Remove the old parser",
    "Speed up start",
]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with a commit for each subject."""
    path = tmp_path / "repository"
    path.mkdir()
    person = {f"GIT_{role}_{what}": "nobody" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **person, "GIT_CONFIG_GLOBAL": os.devnull}

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=path, env=environment, check=True, capture_output=True)

    git("init")
    for subject in SUBJECTS:
        git("commit", "--allow-empty", "--message", subject)
    return path


def final_state(folder: Path, seed: int) -> dict[str, Any]:
    with SqliteSaver(str(folder / "demo.db")) as saver:
        graph = build().compile(checkpointer=saver, name="release-notes")
        snapshot = graph.get_state({"configurable": {"thread_id": f"demo-{seed}"}})
        assert snapshot.next == ()
        return dict(snapshot.values)


@pytest.mark.crash
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_killed_demo_merges_every_commit_once_and_publishes_once(
    seed: int, repository: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "notes"
    options: dict[str, Any] = {"yes": True, "kills": 3, "seed": seed, "pace_seconds": 0.01}
    code = run_demo(tmp_path / "demo.db", out, repository, console=PlainConsole(), **options)
    shown = capfd.readouterr().out
    assert code == 0, shown

    state = final_state(tmp_path, seed)
    assert [entry["number"] for entry in state["entries"]] == list(range(1, len(SUBJECTS) + 1))
    assert [commit["subject"] for commit in state["commits"]] == SUBJECTS[::-1]

    (published,) = out.iterdir()
    assert str(published) == state["published"]["path"]
    assert hashlib.sha256(published.read_bytes()).hexdigest() == state["published"]["sha256"]
    assert published.read_text() == state["text"] == render([condense(c) for c in read_commits(str(repository))])

    assert "killed (SIGKILL)" in shown
    assert state["published"]["sha256"] in shown


def test_the_demo_runs_as_a_module_on_its_sample(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stepwell.demo", "--folder", str(tmp_path), "--yes", "--kills", "0", "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "74 changes, from 7.0.0 to 7.1.3." in done.stdout
    assert len(final_state(tmp_path, 5)["entries"]) == 74


def test_a_draft_that_is_refused_is_not_published(repository: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stepwell.demo", "--folder", str(tmp_path), "--repo", str(repository)]
    command += ["--kills", "0", "--seed", "6"]
    done = subprocess.run(command, input="n\n", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing was published" in done.stdout
    assert final_state(tmp_path, 6)["approved"] is False
    assert not (tmp_path / "notes").exists()


# -- its parts --------------------------------------------------------------------------------------------------------

SECTIONS = {
    "feat: read a config file": "Features",
    "feat(cli)!: rename the command": "Breaking changes",
    "BREAKING CHANGE: drop Python 3.9": "Breaking changes",
    "Fix hook ordering race": "Fixes",
    "docs: add a page": "Documentation",
    "Drop Jammy testing": "Removals and deprecations",
    "pre-commit: Bump versions": "Housekeeping",
    "functional tests: extend PYTHONPATH": "Tests",
    "Speed up start": "Performance",
    "Misbehave less": "Other changes",
    "": "Other changes",
}


@pytest.mark.parametrize(("subject", "section"), SECTIONS.items())
def test_a_subject_finds_its_section(subject: str, section: str) -> None:
    assert classify(subject) == section


LINES = {
    "feat: read  a config file": "Read a config file",
    "fix(parser): keep trailing commas (#12)": "Parser: keep trailing commas",
    "util: Skip normalization.": "Util: Skip normalization",
    "x" * 200: "X" + "x" * 86 + "…",
    "Explain " + "at length " * 20: "Explain at length at length at length at length at length at length at length at…",
}


@pytest.mark.parametrize(("subject", "line"), LINES.items())
def test_a_subject_is_condensed_to_one_line(subject: str, line: str) -> None:
    assert condense(Commit(number=1, ref="a1", subject=subject))["line"] == line


def test_notes_depend_on_the_commits_and_not_on_the_order_they_were_condensed_in() -> None:
    entries = [condense(commit) for commit in parse_log(sample_log())]
    assert render(entries[::-1]) == render(entries)
    assert render([]) == "# Release notes\n\nNo changes.\n"


def test_a_folder_without_history_falls_back_to_the_sample(tmp_path: Path) -> None:
    assert read_commits(str(tmp_path)) == read_commits(None)
    assert len(read_commits(None)) == 74


def test_publishing_twice_leaves_one_file_and_clears_what_a_killed_process_left(tmp_path: Path) -> None:
    first = publish_once(tmp_path, "notes", "text")
    (tmp_path / f".{Path(first['path']).name}.999999.tmp").write_text("half a te")
    assert publish_once(tmp_path, "notes", "text") == first
    assert [path.read_text() for path in tmp_path.iterdir()] == ["text"]


def test_a_published_file_with_other_content_is_not_overwritten(tmp_path: Path) -> None:
    path = Path(publish_once(tmp_path, "notes", "text")["path"])
    path.write_text("tampered with")
    with pytest.raises(FileExistsError, match="other content"):
        publish_once(tmp_path, "notes", "text")
    assert path.read_text() == "tampered with"


def test_the_step_log_survives_half_a_line_and_counts_what_was_reused(tmp_path: Path) -> None:
    path = tmp_path / "steps"
    first, second = StepLog(path, 1), StepLog(path, 2)
    first.add("started", "collect")
    first.add("finished", "collect")
    first.add("started", "condense 1")
    second.add("started", "condense 1")
    second.add("finished", "condense 1")
    path.write_bytes(path.read_bytes() + b'[2, "star')
    lines = read_lines(path)
    assert lines[-1] == Line(2, "finished", "condense 1")
    assert tally(lines) == [Tally("collect", 1, 1, reused=1), Tally("condense 1", 2, 1, reused=0)]


def test_neighbours_that_went_the_same_way_share_a_row() -> None:
    tallies = [
        Tally("draft", 1, 1, 0),
        *(Tally(f"condense {n}", 1, 1, 2) for n in (2, 1, 4)),
        Tally("condense 3", 2, 1, 1),
    ]
    assert rows_of(tallies) == [
        ("condense 1 to 2", "1", "1", "2"),
        ("condense 3", "2", "1", "1"),
        ("condense 4", "1", "1", "2"),
        ("draft", "1", "1", "0"),
    ]
