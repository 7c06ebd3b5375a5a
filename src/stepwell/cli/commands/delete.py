"""`stepwell delete`: a thread and everything under it, or what some of its runs wrote, after a question."""

from __future__ import annotations

import sys

import click

from stepwell.cli.absent import unknown_run, unknown_thread
from stepwell.cli.arguments import thread_argument
from stepwell.cli.database import opened, thread_row
from stepwell.cli.exit_status import FAILED, OK
from stepwell.cli.screen import one_line, say, write_json
from stepwell.cli.settings import Settings, global_options
from stepwell.clock import SystemClock
from stepwell.errors import UsageError
from stepwell.savers.retention.deleting import RunsReport
from stepwell.savers.runs import find_run
from stepwell.savers.threads import status_of
from stepwell.store import Deletion, Reader, Store, ThreadRow


@click.command("delete")
@thread_argument
@click.option("--run", "run_ids", metavar="R", multiple=True, help="Only what this run wrote; may be repeated.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@global_options
@click.pass_obj
def delete(settings: Settings, thread_id: str, run_ids: tuple[str, ...], yes: bool) -> int:
    """Delete a thread: its checkpoints, runs and logs. A run that is going on can write nothing more.

    With --run only what runs of it wrote that have ended. What something stands on stays: the thread is in the same
    state afterwards. On a terminal it asks first, and exits with 1 where the answer is no. Elsewhere --yes must say so.
    """
    with opened(settings) as saver:
        with saver.store.reading() as reader:
            row = thread_row(reader, thread_id)
            _check_runs(reader, thread_id, run_ids)
        if not yes and not _agreed(settings, saver.store, row, run_ids):
            say("Nothing was deleted.")
            return FAILED
        if run_ids:
            _tell(settings, thread_id, saver.delete_for_runs(run_ids))
            return OK
        if not saver.store.delete(Deletion(thread_id, SystemClock().now())):  # somebody else was faster
            with saver.store.reading() as reader:
                raise unknown_thread(reader, thread_id)
    if settings.json:
        write_json({"thread": thread_id, "deleted": True})
    else:
        say(f"thread {one_line(thread_id)} is deleted")
    return OK


def _check_runs(reader: Reader, thread_id: str, run_ids: tuple[str, ...]) -> None:
    for run_id in run_ids:
        run = find_run(reader, run_id)
        if run is None or run.thread_id != thread_id:
            raise unknown_run(run_id, thread_id)


def _tell(settings: Settings, thread_id: str, report: RunsReport) -> None:
    if settings.json:
        told = {"checkpoints": report.checkpoints, "records": report.records, "events": report.events}
        left = {run_id: each._asdict() for run_id, each in report.left.items()}
        write_json({"thread": thread_id, "deleted": bool(report.deleted), **told, "runs": report.runs, "left": left})
        return
    if report.deleted:
        say(f"thread {one_line(thread_id)} is deleted: nobody else wrote to it")
        return
    say(f"{report.checkpoints} checkpoints, {report.records} records and {report.events} events deleted")
    for run_id, each in report.left.items():
        say(
            f"run {one_line(run_id)} stays known: {each.checkpoints} checkpoints on which something stands, "
            f"{each.held} that others need, {each.records} records"
        )


def _agreed(settings: Settings, store: Store, row: ThreadRow, run_ids: tuple[str, ...]) -> bool:
    if settings.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        what = f"what {len(run_ids)} runs of thread {row.thread_id!r} wrote" if run_ids else f"thread {row.thread_id!r}"
        raise UsageError(f"There is nobody to ask whether {what} shall go: say --yes.")
    name = one_line(row.thread_id)
    if run_ids:
        return click.confirm(f"Delete what {len(run_ids)} runs wrote to thread {name}?", default=False, err=True)
    at_work = " A run is at work on it and will be refused its next write." if store.is_held(row) else ""
    branches = "1 lineage" if row.lineages == 1 else f"{row.lineages} lineages"
    return click.confirm(
        f"Delete thread {name} ({status_of(store, row)}, {branches})?{at_work}",
        default=False,
        err=True,
    )
