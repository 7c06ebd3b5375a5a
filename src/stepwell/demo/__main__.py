"""`python -m stepwell.demo`: the demo without the command line package. The rule: options only, no work."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from stepwell.demo.driver import run_demo
from stepwell.demo.screen import open_console


def main(arguments: list[str] | None = None) -> int:
    """Run the demo in a folder of its own."""
    parser = argparse.ArgumentParser(prog="python -m stepwell.demo", description="See a run survive being killed.")
    parser.add_argument("--repo", type=Path, help="a git repository; without one, a sample log")
    parser.add_argument("--folder", type=Path, help="where to keep the database and the notes; default: a new folder")
    parser.add_argument("--yes", action="store_true", help="approve the draft without asking")
    parser.add_argument("--kills", type=int, default=4, help="how often to kill the process at most (default 4)")
    parser.add_argument("--seed", type=int, help="the seed of the kills, to see the same ones again")
    options = parser.parse_args(arguments)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="stepwell-demo-"))
    return run_demo(
        folder / "demo.db",
        folder / "notes",
        options.repo,
        yes=options.yes,
        kills=options.kills,
        console=open_console(),
        seed=options.seed,
    )


if __name__ == "__main__":
    sys.exit(main())
