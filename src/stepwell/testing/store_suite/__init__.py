"""The store contract as a pytest suite: what `stepwell.store` promises, one sentence a test.

For a backend of your own, write a test module that provides one fixture and imports the suite:

    from stepwell.testing.store_suite import *

    @pytest.fixture
    def store_factory(tmp_path):
        return lambda clock: MyStore(tmp_path / "db", clock=clock)

Each call of the factory returns a store on the same database. A backend that several stores can share at once imports
`stepwell.testing.store_suite.shared` as well; one that cannot (memory) leaves it out. Call
`pytest.register_assert_rewrite("stepwell.testing.store_suite")` first, in a conftest, for readable failures.
"""

from stepwell.testing.store_suite.admission import TestAdmission, TestEndedRun
from stepwell.testing.store_suite.blobs import TestBlobs
from stepwell.testing.store_suite.copying import TestCopies
from stepwell.testing.store_suite.deletion import TestDeletion
from stepwell.testing.store_suite.effects import TestEffects, TestForgottenEffects, TestSharedKeys, TestWholeClaims
from stepwell.testing.store_suite.events import TestEventLog
from stepwell.testing.store_suite.fence import TestFence, TestLease
from stepwell.testing.store_suite.fixtures import clock, store
from stepwell.testing.store_suite.group import TestGroupCommit, TestOrder
from stepwell.testing.store_suite.history import TestHistory, TestIsolation
from stepwell.testing.store_suite.inbox import TestInbox
from stepwell.testing.store_suite.items import TestItemRows, TestItemsOfRuns
from stepwell.testing.store_suite.journal import TestJournal
from stepwell.testing.store_suite.lifetime import TestAtomicity, TestLifetime
from stepwell.testing.store_suite.lineages import TestLineages
from stepwell.testing.store_suite.pruning import TestPruning
from stepwell.testing.store_suite.reading import TestReading, TestRuns
from stepwell.testing.store_suite.restoring import TestRestoring
from stepwell.testing.store_suite.shapes import TestShapes
from stepwell.testing.store_suite.threads import TestThreads

__all__ = [
    "TestAdmission",
    "TestAtomicity",
    "TestBlobs",
    "TestCopies",
    "TestDeletion",
    "TestEffects",
    "TestEndedRun",
    "TestEventLog",
    "TestFence",
    "TestForgottenEffects",
    "TestGroupCommit",
    "TestHistory",
    "TestInbox",
    "TestIsolation",
    "TestItemRows",
    "TestItemsOfRuns",
    "TestJournal",
    "TestLease",
    "TestLifetime",
    "TestLineages",
    "TestOrder",
    "TestPruning",
    "TestReading",
    "TestRestoring",
    "TestRuns",
    "TestShapes",
    "TestSharedKeys",
    "TestThreads",
    "TestWholeClaims",
    "clock",
    "store",
]
