"""INV-10 on PostgreSQL: what is said of every row in memory holds there too; a sample here, all where one soaks."""

from collections.abc import Callable, Iterator

import pytest

from stepwell import Encryption
from tests.integrity import test_every_row, test_lost_rows
from tests.integrity.damaging import KEYS, Scene, newest_damages
from tests.integrity.grounds import OnPostgres
from tests.integrity.test_every_row import carried_out, of_table
from tests.integrity.test_lost_rows import ENCRYPTED, LIVES, Life
from tests.stores.binaries import VERSIONS

Make = Callable[..., Scene]
SAMPLE = 17
"""Every so many damages are tried where nobody soaks."""


@pytest.fixture
def scene_of(worker_id: str) -> Iterator[Make]:
    """Make a scene on an empty database of a version."""
    made: list[OnPostgres] = []

    def making(version: int, live: Life | None = None, *, is_encrypted: bool = False) -> Scene:
        key = Encryption({"k": Encryption.new_key()}) if is_encrypted else None
        made.append(OnPostgres(version, worker_id, key))
        return Scene(live, made[0])

    yield making
    for ground in made:
        ground.close()


def test_a_damaged_row_is_named_and_answers_nothing_wrong_on_postgres(scene_of: Make) -> None:
    scene = scene_of(VERSIONS[-1])
    for table in KEYS:
        assert test_every_row.missed_or_wrong(scene, of_table(scene, table, SAMPLE)) == []
    placed = ("namespace", "checkpoint_id", "base_seq", "seq", "digest")
    newest = (damage for damage in newest_damages(scene) if damage.column in placed)
    assert test_every_row.missed_or_wrong(scene, carried_out(scene, newest)) == []


def test_a_repaired_thread_is_a_fork_of_its_last_good_checkpoint_on_postgres(scene_of: Make) -> None:
    scene = scene_of(VERSIONS[-1])
    forks = test_every_row.all_forks(scene)
    for table in KEYS:
        assert test_every_row.repaired_wrongly(scene, forks, table, 3 * SAMPLE)[0] == []


@pytest.mark.parametrize("life", ["branched, copied twice, pruned", "finished, pruned"])
def test_a_row_that_is_gone_is_missed_on_postgres(scene_of: Make, life: str) -> None:
    assert test_lost_rows.missed_or_wrong(scene_of(VERSIONS[-1], LIVES[life]), SAMPLE) == []


@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table", KEYS)
def test_every_damaged_row_is_named_and_answers_nothing_wrong(scene_of: Make, table: str, version: int) -> None:
    scene = scene_of(version)
    assert test_every_row.missed_or_wrong(scene, of_table(scene, table)) == []


@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("table", KEYS)
def test_every_repaired_thread_is_a_fork_of_its_last_good_checkpoint(scene_of: Make, table: str, version: int) -> None:
    scene = scene_of(version)
    wrong, repaired = test_every_row.repaired_wrongly(scene, test_every_row.all_forks(scene), table, 1)
    assert wrong == []
    assert repaired


@pytest.mark.soak
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("life", "is_encrypted"), [*((life, False) for life in LIVES), *((life, True) for life in ENCRYPTED)]
)
def test_every_row_that_is_gone_is_missed(scene_of: Make, life: str, is_encrypted: bool, version: int) -> None:
    assert test_lost_rows.missed_or_wrong(scene_of(version, LIVES[life], is_encrypted=is_encrypted)) == []
