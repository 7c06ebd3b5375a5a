"""The page of benchmarks shows what was measured: its tables are made from the results that lie beside it."""

import json

from benchmarks import publish


def test_the_tables_of_the_page_are_those_of_the_results() -> None:
    text = publish.PAGE.read_text("utf-8")
    assert publish.page(text, json.loads(publish.RESULTS.read_text("utf-8"))) == text


def test_every_group_of_ratios_has_its_plot() -> None:
    shown = publish.PAGE.read_text("utf-8")
    for plot in publish.PLOTS.glob("*.png"):
        assert f"](benchmarks/{plot.name})" in shown
    assert all((publish.PAGE.parent / f"benchmarks/{family}.png").is_file() for family in publish.plotted(shown))
