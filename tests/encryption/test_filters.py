"""A filter over what cannot be read selects nothing: least of all for what is then thrown away."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from stepwell import DatabaseEncryptedError, Encryption, KeyContext, SqliteSaver
from tests.encryption.conftest import begin, behind, opened

AN_INSTANT = timedelta(microseconds=1)
KEYS = {name: Encryption.new_key() for name in ("house", "acme", "zed")}


def tenant(context: KeyContext) -> str:
    return context.thread_id.partition("/")[0] or "house"


def ids(saver: SqliteSaver, **options: Any) -> set[str]:
    return {each.thread_id for each in saver.threads(**options)}


def test_R4_INV_14_a_filter_selects_no_thread_of_a_tenant_whose_key_is_not_at_hand(path: Path) -> None:
    with SqliteSaver(path, encryption=Encryption(KEYS, current=tenant)) as saver:
        begin(saver, "acme/1", "zed/1")
    mine = {name: KEYS[name] for name in ("house", "acme")}
    with SqliteSaver(path, encryption=Encryption(mine, current=tenant)) as saver:
        assert ids(saver, filter={"owner": "of acme/1"}) == {"acme/1"}
        assert ids(saver, filter={"owner": "of zed/1"}) == ids(saver, filter={"owner": "nobody"}) == set()
        assert saver.sweep(ttl=AN_INSTANT, filter={"owner": "nobody"}, unfinished=True).deleted == 0
        assert saver.prune({"owner": "nobody"}, strategy="delete", unfinished=True).deleted == 0
        assert ids(saver) == {"acme/1", "zed/1"}

        report = saver.prune({}, keep_last=1)  # one's own are not kept from it
        assert report.threads == 1
        assert "key 'zed', which was not given" in report.skipped["zed/1"]
        assert saver.prune({"owner": "of acme/1"}, strategy="delete", unfinished=True).deleted == 1
        assert ids(saver) == {"zed/1"}


def test_INV_14_without_a_key_a_filter_on_what_is_hidden_is_refused(path: Path, key: bytes) -> None:
    with opened(path, key) as saver:
        begin(saver, "t", "u")
    with SqliteSaver(path) as locked:
        for refused in (
            lambda: ids(locked, filter={"owner": "of t"}),
            lambda: locked.sweep(ttl=AN_INSTANT, filter={"owner": "of t"}, unfinished=True),
            lambda: locked.prune({"owner": "of t"}, strategy="delete"),
        ):
            with pytest.raises(DatabaseEncryptedError, match="no key was given"):
                refused()
        assert ids(locked) == {"t", "u"}
        assert ids(locked, status="paused") == {"t", "u"}


@pytest.mark.parametrize("secret", [True, False])
def test_INV_14_a_filter_throws_away_no_thread_whose_metadata_is_damaged(path: Path, key: bytes, secret: bool) -> None:
    with opened(path, key) if secret else SqliteSaver(path) as saver:
        begin(saver, "t", "u")
    with behind(path) as database:
        database.execute("update checkpoints set metadata = '\"?' where thread_id = 't'")
    with opened(path, key) if secret else SqliteSaver(path) as saver:
        swept = saver.sweep(ttl=AN_INSTANT, filter={"owner": "of u"}, unfinished=True)
        pruned = saver.prune({"owner": "nobody"}, strategy="delete", unfinished=True)
        assert (swept.deleted, pruned.deleted) == (1, 0)
        assert "its columns do not match its digest" in swept.skipped["t"]
        assert "its columns do not match its digest" in pruned.skipped["t"]
        assert ids(saver) == {"t"}
