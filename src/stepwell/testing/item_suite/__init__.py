"""What an item store promises (INV-12, INV-14), as a pytest suite: run on every one there is.

For a store of your own, write a test module that provides one fixture and imports the suite:

    from stepwell.testing.item_suite import *

    @pytest.fixture
    def item_store_factory(tmp_path):
        return lambda clock, **options: MyStore(tmp_path / "items.db", clock=clock, **options)
"""

from stepwell.testing.item_suite.finding import TestFilters, TestNamespaces, TestSearch
from stepwell.testing.item_suite.fixtures import ask, clock, item_store
from stepwell.testing.item_suite.writing import TestBatches, TestItems, TestNames, TestTTL

__all__ = [
    "TestBatches",
    "TestFilters",
    "TestItems",
    "TestNames",
    "TestNamespaces",
    "TestSearch",
    "TestTTL",
    "ask",
    "clock",
    "item_store",
]
