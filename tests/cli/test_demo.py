"""`stepwell demo`: what it hands to the demo, and what its exit status means."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.calls import Call, command_line, environment


@pytest.fixture
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with a history of three commits."""
    path = tmp_path_factory.mktemp("repository")
    person = {f"GIT_{role}_{what}": "nobody" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    git = ["git", "-C", str(path)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for subject in ("feat: begin", "fix: mend", "docs: explain"):
        subprocess.run(
            [*git, "commit", "--quiet", "--allow-empty", "-m", subject],
            env={**os.environ, **person, "GIT_CONFIG_GLOBAL": os.devnull},
            check=True,
        )
    return path


@pytest.mark.crash
def test_the_demo_publishes_the_notes_of_a_repository_once(repository: Path, folder: Path) -> None:
    done = subprocess.run(
        command_line("demo", "--yes", "--repo", str(repository), "--out", "notes", "--kills", "1", "--db", "d.db"),
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    [notes] = (folder / "notes").iterdir()
    assert "Begin" in notes.read_text()
    assert "You saw one run killed" in done.stdout
    assert (folder / "d.db").exists()


@pytest.mark.crash
def test_with_json_the_demo_ends_in_one_object(repository: Path) -> None:
    done = subprocess.run(
        command_line("demo", "--repo", str(repository), "--kills", "0", "--json"),
        env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    shown = json.loads(done.stdout)
    assert (done.returncode, shown.pop("ok")) == (0, True)
    assert [notes.suffix for notes in Path(shown["out"]).iterdir()] == [".md"]
    assert done.stderr.startswith("There is no terminal to ask on: the draft is approved, as with --yes.\n")


def test_a_folder_without_a_history_is_refused_where_it_was_named(call: Call) -> None:
    result = call("demo", "--yes", "--repo", "/", status=2)
    assert result.stderr == "error[usage_error]: There is no git history in '/'. Leave --repo out for a sample log.\n"
