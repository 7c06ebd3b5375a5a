"""Runs the demo: starts the graph in a child process, kills it at random moments, starts it again, and counts.

Here: the order of events. Not here: what the child does (`child.py`), the counting (`step_log.py`) and the layout
(`screen.py`). The rule: the verdict comes from files alone: the step log, the published file, the database.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepwell.demo.screen import Console, ask, say, show_tallies
from stepwell.demo.step_log import Line, Tally, read_lines, tally

PACE_SECONDS = 0.02
"""How long every step takes at least, so that there is something to kill."""


@dataclass(frozen=True)
class Demo:
    """Where one demo keeps its things, and the seed of its accidents."""

    db: Path
    out: Path
    repo: Path | None
    seed: int
    pace_seconds: float

    @property
    def thread_id(self) -> str:
        return f"demo-{self.seed}"

    @property
    def log(self) -> Path:
        return self.db.with_name(f"{self.db.name}.{self.thread_id}.steps")


@dataclass(frozen=True)
class Kill:
    """Kill the child `delay_seconds` after its line number `after_lines`."""

    after_lines: int
    delay_seconds: float


@dataclass(frozen=True)
class Life:
    """What one child process said, and how it ended."""

    events: list[dict[str, Any]]
    exit_code: int
    killed: bool

    @property
    def last(self) -> dict[str, Any]:
        return self.events[-1] if self.events else {}

    def count(self, event: str) -> int:
        return sum(each["event"] == event for each in self.events)


def run_demo(
    db: Path,
    out: Path,
    repo: Path | None,
    *,
    yes: bool,
    kills: int,
    console: Console,
    seed: int | None = None,
    pace_seconds: float = PACE_SECONDS,
) -> int:
    """Draft, approve and publish release notes while the process is killed up to `kills` times.

    Return 0 if every step is in the result exactly once and the notes were published once, or not approved.
    """
    demo = Demo(db, out, repo, random.SystemRandom().randrange(10**6) if seed is None else seed, pace_seconds)
    db.parent.mkdir(parents=True, exist_ok=True)
    _introduce(demo, console)
    lives = _drive(demo, yes, kills, console)
    return 1 if lives[-1].exit_code else _conclude(demo, lives, console)


def _drive(demo: Demo, yes: bool, kills: int, console: Console) -> list[Life]:
    """Run child after child until one reports the end, or fails."""
    chance = random.Random(demo.seed)
    answer: bool | None = None
    lives: list[Life] = []
    while True:
        left = kills - sum(life.killed for life in lives)
        life = _live(demo, len(lives) + 1, answer, _next_kill(chance, demo, left, answer is not None))
        lives.append(life)
        _tell_life(console, len(lives), life)
        if life.killed:
            continue
        if life.exit_code or life.last["event"] == "ended":
            return lives
        answer = _decide(life.last["question"], yes, console)


def _next_kill(chance: random.Random, demo: Demo, left: int, answered: bool) -> Kill | None:
    """Choose the next moment. The last kill is kept for the time after the approval, when the file is published."""
    kept = 0 if answered or left < 2 else 1
    if left - kept < 1:
        return None
    return Kill(chance.randint(1, 3 if answered else 24), chance.uniform(0, 2 * demo.pace_seconds))


def _live(demo: Demo, process: int, answer: bool | None, kill: Kill | None) -> Life:
    """Run one child to its end, or to its kill."""
    events: list[dict[str, Any]] = []
    shot = False
    with subprocess.Popen(_command(demo, process, answer), stdout=subprocess.PIPE, text=True) as child:
        try:
            for line in child.stdout or ():
                if line.endswith("\n"):  # a killed child may leave half a line
                    events.append(json.loads(line))
                if kill and not shot and len(events) == kill.after_lines:
                    time.sleep(kill.delay_seconds)
                    child.kill()
                    shot = True
        except BaseException:
            child.kill()
            raise
    return Life(events, child.returncode, killed=shot and child.returncode != 0)


def _command(demo: Demo, process: int, answer: bool | None) -> list[str]:
    command = [sys.executable, "-m", "stepwell.demo.child", "--db", str(demo.db), "--thread", demo.thread_id]
    command += ["--log", str(demo.log), "--process", str(process), "--pace", str(demo.pace_seconds)]
    command += ["--out", str(demo.out.resolve())]
    command += [] if demo.repo is None else ["--repo", str(demo.repo.resolve())]
    return command if answer is None else [*command, "--answer", json.dumps(answer)]


def _decide(question: dict[str, str], yes: bool, console: Console) -> bool:
    say(console, f"\n{question['draft']}")
    if yes:
        say(console, "approve: publish these notes? yes (--yes)\n")
        return True
    return ask(console, "approve: publish these notes?")


# -- what is shown ----------------------------------------------------------------------------------------------------


def _introduce(demo: Demo, console: Console) -> None:
    source = "a sample log" if demo.repo is None else f"git log of {demo.repo}"
    say(console, f"Release notes from {source}: collect, condense each commit, draft, approve, publish.")
    say(console, f"database {demo.db}, thread {demo.thread_id}, seed {demo.seed}\n")


def _tell_life(console: Console, process: int, life: Life) -> None:
    reused, started, durable = (life.count(event) for event in ("reused", "started", "durable"))
    end = "killed (SIGKILL)" if life.killed else "failed" if life.exit_code else life.last["event"]
    taken = f"{reused:3} results of a half-done superstep taken over"
    say(console, f"process {process}: {taken}, {started:3} steps started, {durable:3} durable, {end}")


def _conclude(demo: Demo, lives: list[Life], console: Console) -> int:
    """Show the table and the file, check both, and say what it was."""
    end = lives[-1].last
    lines = read_lines(demo.log)
    say(console)
    show_tallies(console, tally(lines))
    say(console, "A step that asks a question starts again with the answer.")
    faults = _faults(demo, lives, lines)
    if end["published"] is not None:
        say(console, f"published {end['published']['path']}\nsha256    {end['published']['sha256']}")
    say(console)
    say(console, f"This is a bug in Stepwell: {'; '.join(faults)}." if faults else _verdict(tally(lines), lives))
    return 1 if faults else 0


def _faults(demo: Demo, lives: list[Life], lines: list[Line]) -> list[str]:
    """Return what did not go as promised."""
    end = lives[-1].last
    faults = []
    if sorted(end["entries"]) != list(range(1, end["commits"] + 1)):
        faults.append("a commit is missing from the notes or in them twice")
    if end["published"] is not None and not _is_published_once(demo, end["published"]):
        faults.append("the notes were not published exactly once")
    repeated = sorted(step for step in _repeated(lives, lines))
    if repeated:
        faults.append(f"these steps ran again although their results were durable: {', '.join(repeated)}")
    return faults


def _repeated(lives: list[Life], lines: list[Line]) -> set[str]:
    durable_in = {
        event["step"]: process
        for process, life in reversed(list(enumerate(lives, start=1)))
        for event in life.events
        if event["event"] == "durable"
    }
    return {
        line.step
        for line in lines
        if line.event == "started" and line.process > durable_in.get(line.step, line.process)
    }


def _is_published_once(demo: Demo, published: dict[str, str]) -> bool:
    path = Path(published["path"])
    same_name = sorted(demo.out.resolve().glob(f"*{published['sha256'][:12]}*"))
    return same_name == [path] and hashlib.sha256(path.read_bytes()).hexdigest() == published["sha256"]


def _verdict(tallies: list[Tally], lives: list[Life]) -> str:
    end, killed = lives[-1].last, sum(life.killed for life in lives)
    reused = sum(each.reused for each in tallies)
    ran = "finish" if not killed else f"killed {'once' if killed == 1 else f'{killed} times'} and finish all the same"
    notes = "nothing was published, as you decided" if end["published"] is None else "the notes were published once"
    return (
        f"You saw one run {ran}: each of {end['commits']} commits is in the notes "
        f"exactly once, finished results were reused {reused} times and no durable step ran twice, and {notes}."
    )
