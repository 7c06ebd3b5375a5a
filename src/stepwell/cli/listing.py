"""Long lists: how many items to show, where to go on, and that there is more.

The rule: a list that was cut says so, on stderr for a person and in `more` for a program.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from typing import Any

import click

from stepwell.cli.screen import say, write_json
from stepwell.cli.settings import Command


def page_options(metavar: str, what: str, *, option: str = "--before", **typed: Any) -> Callable[[Command], Command]:
    """Give a command that lists the options to say which part of the list."""
    go_on = click.option(option, metavar=metavar, help=what, **typed)
    limit = click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many.")
    return lambda command: limit(go_on(command))


def filter_option(what: str) -> Callable[[Command], Command]:
    """Return the option that says which items."""
    return click.option("--filter", "wanted", metavar="KEY=JSON", multiple=True, help=f"{what}; may be repeated.")


def write_page(name: str, facts: Iterable[Any], more: Any, **about: Any) -> None:
    """Write a part of a list as JSON, with where to go on; None where nothing is left."""
    write_json({**about, name: list(facts), "more": more})


def say_more(more: Any, *, option: str = "--before") -> None:
    """Say that there is more, and how to get at it."""
    if more is not None:
        say(f"there is more: {option} {shlex.quote(str(more))}")
