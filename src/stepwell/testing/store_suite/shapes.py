"""Shapes: what a fingerprint stands for is kept once, with the first thread that has it, and verified when read."""

from __future__ import annotations

from stepwell.errors import ThreadBusyError
from stepwell.ids import fingerprint_of
from stepwell.store import ShapeRow, Store
from stepwell.testing.store_suite.drive import THREAD, Drive, started

SHAPE = '{"nodes":{}}'
ROW = ShapeRow(fingerprint_of(SHAPE), SHAPE)


class TestShapes:
    """INV-1, INV-10: a checkpoint never names a fingerprint whose shape is lost."""

    def test_a_shape_is_read_by_its_fingerprint(self, store: Store) -> None:
        claim = Drive(store).claim()
        claim.shape = ROW
        store.admit(claim)
        with store.reading() as reader:
            assert reader.shape(ROW.fingerprint) == SHAPE
            assert reader.shape("another") is None
        assert list(store.verify()) == []

    def test_a_shape_that_is_there_is_given_again(self, store: Store) -> None:
        for number in range(3):
            claim = Drive(store, f"thread-{number}", run_id=f"run-{number}").claim()
            claim.shape = ROW
            assert store.admit(claim) is not None
        with store.reading() as reader:
            assert reader.shape(ROW.fingerprint) == SHAPE

    def test_a_claim_that_does_not_land_leaves_no_shape(self, store: Store) -> None:
        started(store)
        claim = Drive(store, THREAD, run_id="late").claim()
        claim.shape = ROW
        try:
            assert store.admit(claim) is None
        except ThreadBusyError:
            pass
        with store.reading() as reader:
            assert reader.shape(ROW.fingerprint) is None
        again = Drive(store, "thread-2", run_id="run-2").claim()
        again.shape = ROW
        store.admit(again)
        with store.reading() as reader:
            assert reader.shape(ROW.fingerprint) == SHAPE
