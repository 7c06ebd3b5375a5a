"""The page of benchmarks and the README show what was measured: both are made from the results beside the page."""

import json
from typing import Any

from benchmarks import publish


def _results() -> Any:
    return json.loads(publish.RESULTS.read_text("utf-8"))


def test_the_tables_of_the_page_are_those_of_the_results() -> None:
    text = publish.PAGE.read_text("utf-8")
    assert publish.page(text, publish.tables(_results())) == text


def test_what_the_readme_says_of_speed_is_what_was_measured() -> None:
    text = publish.README.read_text("utf-8")
    assert publish.page(text, publish.overview(_results())) == text


def test_every_group_of_ratios_has_its_plot() -> None:
    shown = publish.PAGE.read_text("utf-8")
    for plot in publish.PLOTS.glob("*.png"):
        assert f"](benchmarks/{plot.name})" in shown
    assert all((publish.PAGE.parent / f"benchmarks/{family}.png").is_file() for family in publish.plotted(shown))
