"""`stepwell demo`: watch a run being killed and finish all the same. What is shown is the demo package's."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import click

from stepwell.cli.screen import say, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.errors import UsageError

KILLS = 4


@click.command("demo")
@click.option("--yes", is_flag=True, help="Approve the draft without asking.")
@click.option("--repo", type=click.Path(path_type=Path), metavar="DIR", help="A git repository [this folder's].")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where to publish to [a new folder].")
@click.option(
    "--kills", type=click.IntRange(min=0), metavar="N", default=KILLS, help=f"How often to kill it, at most [{KILLS}]."
)
@global_options
@click.pass_obj
def demo(settings: Settings, yes: bool, repo: Path | None, out: Path | None, kills: int) -> int:
    """Draft release notes from a git history in a process that is killed again and again.

    Without a terminal to ask on, the draft is approved as with --yes. Without a history, a sample log is used.
    """
    from stepwell.demo.driver import run_demo
    from stepwell.demo.screen import PlainConsole, open_console

    source = _repository(repo)
    folder = Path(tempfile.mkdtemp(prefix="stepwell-demo-")) if settings.db is None or out is None else Path()
    db = folder / "demo.db" if settings.db is None else Path(settings.db)
    notes = folder / "notes" if out is None else out
    if not yes and not sys.stdin.isatty():
        say("There is no terminal to ask on: the draft is approved, as with --yes.")
        yes = True
    with redirect_stdout(sys.stderr) if settings.json else nullcontext():
        console = open_console() if sys.stdout.isatty() and not settings.json else PlainConsole()
        status = run_demo(db, notes, source, yes=yes, kills=kills, console=console)
    if settings.json:
        write_json({"database": str(db), "out": str(notes), "ok": status == 0})
    return status


def _repository(given: Path | None) -> Path | None:
    """Return the repository to read; None for the sample log."""
    place = given or Path.cwd()
    if _has_history(place):
        return place
    if given is not None:
        raise UsageError(f"There is no git history in {str(given)!r}. Leave --repo out for a sample log.")
    return None


def _has_history(place: Path) -> bool:
    command = ["git", "-C", str(place), "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:  # no git on this machine
        return False
