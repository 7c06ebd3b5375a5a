"""Rows whose bodies are compressed above a size, before whatever else is done to them: encrypting comes after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.errors import InvalidConfigError
from stepwell.store import BlobRow, CheckpointRow, EffectRow, RecordRow, Store
from stepwell.store.sealing import Sealer
from stepwell.superstep.compression import compress, zstd
from stepwell.superstep.items import ItemWrite


class CompressingSealer:
    """Compresses the bodies of checkpoints and records, and large values, then has another seal them."""

    def __init__(self, inner: Sealer, above: int) -> None:
        self._inner, self._above = inner, above
        self.blob_name = inner.blob_name

    def checkpoint(self, columns: tuple[Any, ...]) -> CheckpointRow:
        """Return the row as it is stored."""
        body = columns[-1]
        return self._inner.checkpoint(columns if len(body) <= self._above else (*columns[:-1], compress(body)))

    def record(self, row: RecordRow) -> RecordRow:
        """Return the row as it is stored."""
        return self._inner.record(row if len(row.body) <= self._above else row._replace(body=compress(row.body)))

    def blob(self, row: BlobRow) -> BlobRow:
        """Return the row as it is stored. Its name is that of the value, compressed or not."""
        return self._inner.blob(row if len(row.body) <= self._above else row._replace(body=compress(row.body)))

    def effect(self, row: EffectRow) -> EffectRow:
        """Return the row as it is stored."""
        return self._inner.effect(row)

    def items(self, writes: Sequence[ItemWrite]) -> tuple[ItemWrite, ...]:
        """Return the writes as they are stored."""
        return self._inner.items(writes)


def checked_size(above: int | None) -> int | None:
    """Return the size; InvalidConfigError where it is none, ZstdMissingError where nothing can be compressed."""
    if above is None:
        return None
    if isinstance(above, bool) or not isinstance(above, int) or above < 0:
        raise InvalidConfigError(reason=f"compress_above is a number of bytes, not {above!r}", key="compress_above")
    zstd()
    return above


def with_compression(store: Store, above: int | None) -> Store:
    """Have a store's rows compressed above a checked size; None: leave them."""
    if above is not None:
        store.sealer = CompressingSealer(store.sealer, above)  # type: ignore[misc]  # every open store can change it
    return store
