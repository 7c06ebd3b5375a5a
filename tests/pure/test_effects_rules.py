"""INV-7 as tables: what a call of an effect is told, for each status, each place and each way to call it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stepwell.superstep.effects.keys import BROUGHT, keys_of_place, lineages_to_search, position_key, renewed_key
from stepwell.superstep.effects.rules import (
    COMPENSATED,
    DONE,
    DOUBT,
    FAILED,
    INTENT,
    STATUSES,
    Asked,
    InDoubt,
    Known,
    Perform,
    Refuse,
    Reuse,
    counting,
    judge,
    spokesman,
)

K = "key"
K1, K2 = renewed_key(K), renewed_key(renewed_key(K))
OURS = renewed_key(K, "t")
"""The key of what thread t does where another thread has the key for something else."""
NOW, LONG_AGO, VALID_FOR = 1000, 100, 500


def known(
    status: str, key: str = K, thread: str = "t", inputs: str = "a", at: int = NOW, running: bool = False
) -> Known:
    return Known(key, thread, status, inputs, at if status in (DONE, FAILED) else 0, running)


def asked(inputs: str = "a", key: str = K, by_user: bool = False, **how: Any) -> Asked:
    return Asked(key, inputs, "t", by_user, **how)


def verdict(call: Asked, *rows: Known, lineages: Sequence[Known] = ()) -> Any:
    """Return what the call is told, where this is all that is known."""
    return judge(call, lambda key: [row for row in rows if row.key == key], lineages, NOW)


def there(status: str, key: str = "there", **how: Any) -> Known:
    """Return something known at the position in another lineage."""
    return known(status, key, **how)


RUNNING = known(INTENT, running=True)
OWN = [
    (known(INTENT), InDoubt(known(INTENT))),
    (RUNNING, Refuse("busy", RUNNING)),
    (known(DONE), Reuse(known(DONE), inherited=False)),
    (known(FAILED), Perform(K)),
    (known(DOUBT), InDoubt(known(DOUBT))),
    (known(COMPENSATED), Refuse("compensated", known(COMPENSATED))),
]


def test_what_nobody_knows_is_performed() -> None:
    assert verdict(asked()) == Perform(K)
    assert verdict(asked(by_user=True)) == Perform(K)


@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize(("own", "told"), OWN)
def test_each_status_of_its_own_effect(own: Known, told: Any, by_user: bool) -> None:
    assert verdict(asked(by_user=by_user), own) == told


def test_the_table_has_every_status() -> None:
    assert {own.status for own, _ in OWN} == set(STATUSES)


@pytest.mark.parametrize("status", [INTENT, DONE, DOUBT, COMPENSATED])
def test_its_place_with_other_inputs_is_refused(status: str) -> None:
    assert verdict(asked("b"), known(status)) == Refuse("other_inputs", known(status))


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("thread", ["t", "u"])
def test_a_key_of_the_users_with_other_inputs_is_a_conflict(status: str, thread: str) -> None:
    row = known(status, thread=thread)
    assert verdict(asked("b", by_user=True), row) == Refuse("conflict", row)


@pytest.mark.parametrize("on_fork", ["reuse", "reissue", "forbid"])
@pytest.mark.parametrize(("own", "told"), OWN)
def test_on_fork_says_nothing_of_its_own_effect(own: Known, told: Any, on_fork: str) -> None:
    assert verdict(asked(on_fork=on_fork), own) == told


# -- renewed keys -----------------------------------------------------------------------------------------------------


def test_what_failed_is_called_with_other_inputs_under_a_renewed_key() -> None:
    assert verdict(asked("b"), known(FAILED)) == Perform(K1)
    assert verdict(asked("c"), known(FAILED), known(FAILED, K1, inputs="b")) == Perform(K2)


@pytest.mark.parametrize("own", [own for own, _ in OWN if own.status != FAILED])
def test_once_renewed_with_other_inputs_the_first_ones_are_not_performed_any_more(own: Known) -> None:
    """The renewed effect is the place's: its own inputs get its answer, the first ones are other inputs by now."""
    after = own._replace(key=K1, fingerprint="b")
    rows = known(FAILED), after
    assert verdict(asked("a"), *rows) == verdict(asked("c"), *rows) == Refuse("other_inputs", after)
    assert verdict(asked("b"), *rows) == verdict(asked("b", key=K1), after)


def test_what_failed_was_renewed_and_failed_too_goes_on_from_there() -> None:
    rows = known(FAILED), known(FAILED, K1, inputs="b")
    assert verdict(asked("b"), *rows) == Perform(K1)
    assert verdict(asked("a"), *rows) == Perform(K2)


@pytest.mark.parametrize("by_user", [False, True])
def test_a_receipt_answers_until_it_is_too_old_and_then_its_key_is_renewed(by_user: bool) -> None:
    call = asked(by_user=by_user, valid_for=VALID_FOR)
    last = known(DONE, at=NOW - VALID_FOR)
    assert verdict(call, last) == Reuse(last, False)
    old = known(DONE, at=NOW - VALID_FOR - 1)
    assert verdict(call, old) == Perform(K1)
    assert verdict(call, old, known(DONE, K1)) == Reuse(known(DONE, K1), False)
    assert verdict(call, old, known(DOUBT, K1)) == InDoubt(known(DOUBT, K1))
    assert verdict(call, old, known(DONE, K1, at=LONG_AGO)) == Perform(K2)
    assert verdict(asked(by_user=by_user), old) == Reuse(old, False)


def test_forbid_does_not_mind_a_receipt_of_its_own_that_is_too_old() -> None:
    assert verdict(asked(on_fork="forbid", valid_for=VALID_FOR), known(DONE, at=LONG_AGO)) == Perform(K1)


def test_the_keys_that_are_renewed_from_one_are_all_different() -> None:
    assert len({K, K1, K2, OURS, renewed_key(K, "u")}) == 5


def test_nothing_but_a_receipt_grows_too_old() -> None:
    call = asked(valid_for=VALID_FOR)
    for status in (INTENT, DOUBT):
        own = known(status)._replace(finished_at=LONG_AGO)
        assert verdict(call, own) == InDoubt(own)
    own = known(COMPENSATED)._replace(finished_at=LONG_AGO)
    assert verdict(call, own) == Refuse("compensated", own)


def test_an_old_receipt_of_other_inputs_is_no_reason_for_a_new_effect() -> None:
    old = known(DONE, at=LONG_AGO)
    assert verdict(asked("b", valid_for=VALID_FOR), old) == Refuse("other_inputs", old)
    assert verdict(asked("b", by_user=True, valid_for=VALID_FOR), old) == Refuse("conflict", old)


# -- other lineages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [(), (known(FAILED),), (known(DONE, at=LONG_AGO),)])
def test_what_has_not_happened_here_is_answered_by_what_happened_elsewhere(own: tuple[Known, ...]) -> None:
    """Not yet, not for sure, or too long ago: none of them is a reason to perform again what another lineage did."""
    call = asked(valid_for=VALID_FOR)
    running = there(INTENT, running=True)
    assert verdict(call, *own, lineages=[there(DONE)]) == Reuse(there(DONE), True)
    assert verdict(call, *own, lineages=[there(DOUBT)]) == InDoubt(there(DOUBT))
    assert verdict(call, *own, lineages=[there(INTENT)]) == InDoubt(there(INTENT))
    assert verdict(call, *own, lineages=[running]) == Refuse("busy", running)
    assert verdict(call, *own, lineages=[there(COMPENSATED)]) == Refuse("compensated", there(COMPENSATED))
    anew = Perform(K1 if own and own[0].status == DONE else K)
    assert verdict(call, *own, lineages=[there(FAILED)]) == anew
    assert verdict(call, *own, lineages=[there(DONE, inputs="b")]) == anew
    assert verdict(call, *own, lineages=[there(DONE, at=LONG_AGO)]) == anew


def test_what_failed_here_with_other_inputs_is_answered_by_what_happened_elsewhere() -> None:
    assert verdict(asked("b"), known(FAILED), lineages=[there(DONE, inputs="b")]) == Reuse(
        there(DONE, inputs="b"), True
    )


def test_the_first_lineage_with_the_same_inputs_answers() -> None:
    other, first, second = there(DONE, "x", inputs="b"), there(DOUBT, "y"), there(DONE, "z")
    assert verdict(asked(), lineages=[other, first, second]) == InDoubt(first)
    assert verdict(asked(), lineages=[other, second, first]) == Reuse(second, True)


def test_a_receipt_that_is_too_old_leaves_the_answer_to_the_next_lineage() -> None:
    old, doubt = there(DONE, "old", at=LONG_AGO), there(DOUBT, "next")
    call = asked(valid_for=VALID_FOR)
    assert verdict(call, lineages=[old, doubt]) == InDoubt(doubt)
    assert verdict(call, lineages=[old, there(DONE)]) == Reuse(there(DONE), True)
    assert verdict(call, lineages=[old]) == Perform(K)


@pytest.mark.parametrize("status", [INTENT, DONE, DOUBT, COMPENSATED])
@pytest.mark.parametrize("inputs", ["a", "b"])
@pytest.mark.parametrize("at", [NOW, LONG_AGO])
def test_reissue_performs_whatever_happened_elsewhere_and_forbid_refuses_whatever_did(
    status: str, inputs: str, at: int
) -> None:
    elsewhere = there(status, inputs=inputs, at=at)
    assert verdict(asked(on_fork="reissue", valid_for=VALID_FOR), lineages=[elsewhere]) == Perform(K)
    assert verdict(asked(on_fork="forbid", valid_for=VALID_FOR), lineages=[elsewhere]) == Refuse("forbidden", elsewhere)


def test_what_failed_elsewhere_forbids_nothing() -> None:
    assert verdict(asked(on_fork="forbid"), lineages=[there(FAILED)]) == Perform(K)


# -- other threads that share the key ---------------------------------------------------------------------------------


@pytest.mark.parametrize("by_user", [False, True])
def test_what_a_copy_did_under_the_key_answers_as_inherited(by_user: bool) -> None:
    row = known(DONE, thread="u")
    assert verdict(asked(by_user=by_user), row) == Reuse(row, True)
    assert verdict(asked(by_user=by_user), known(DOUBT, thread="u")) == InDoubt(known(DOUBT, thread="u"))
    assert verdict(asked(by_user=by_user), known(FAILED, thread="u")) == Perform(K)


@pytest.mark.parametrize("status", [INTENT, DONE, DOUBT, COMPENSATED])
def test_what_a_copy_did_with_other_inputs_leaves_its_key_to_it(status: str) -> None:
    row = known(status, thread="u", inputs="b")
    assert verdict(asked(), row) == Perform(OURS)
    assert verdict(asked(), row, lineages=[there(DONE)]) == Reuse(there(DONE), True)
    assert verdict(asked(on_fork="forbid"), row) == Refuse("forbidden", row)


def test_what_failed_in_a_copy_with_other_inputs_is_renewed_for_both() -> None:
    failed = known(FAILED, thread="u", inputs="b")
    assert verdict(asked(), failed) == Perform(K1)
    done = known(DONE, K1, thread="u")
    assert verdict(asked(), failed, done) == Reuse(done, True)


def test_a_receipt_of_a_copy_that_is_too_old_is_renewed_for_both() -> None:
    call, old = asked(valid_for=VALID_FOR), known(DONE, thread="u", at=LONG_AGO)
    assert verdict(call, old) == Perform(K1)
    done = known(DONE, K1, thread="u")
    assert verdict(call, old, done) == Reuse(done, True)
    assert verdict(call, old._replace(thread_id="t"), done) == Reuse(done, True)
    forbidding = asked(valid_for=VALID_FOR, on_fork="forbid")
    assert verdict(forbidding, old) == Refuse("forbidden", old)


def test_reissue_performs_under_a_key_of_its_own_where_a_copy_has_used_the_key() -> None:
    assert verdict(asked(on_fork="reissue"), known(DONE, thread="u")) == Perform(OURS)
    assert verdict(asked(on_fork="reissue"), known(DONE, thread="t"), known(DONE, thread="u")) == Reuse(
        known(DONE), False
    )


@pytest.mark.parametrize("on_fork", ["reuse", "reissue", "forbid"])
def test_what_a_copy_knows_of_its_own_effect_answers_it_whatever_on_fork_says(on_fork: str) -> None:
    done = known(DONE, thread="u")
    assert verdict(asked(on_fork=on_fork), known(DOUBT), done) == Reuse(done, True)


def test_an_old_receipt_of_a_copy_with_other_inputs_leaves_its_key_to_it() -> None:
    old = known(DONE, thread="u", inputs="b", at=LONG_AGO)
    assert verdict(asked(valid_for=VALID_FOR), old) == Perform(OURS)


def test_what_this_thread_did_at_its_place_answers_before_what_a_copy_did_under_the_places_key() -> None:
    """The call then comes with the key of what was done here last."""
    theirs, ours = known(DONE, thread="u", inputs="b"), known(DONE, OURS)
    assert verdict(asked(key=OURS), theirs, ours, lineages=[theirs]) == Reuse(ours, False)
    assert verdict(asked("b", key=OURS), theirs, ours, lineages=[theirs]) == Refuse("other_inputs", ours)
    failed = known(FAILED, OURS)
    assert verdict(asked("b", key=OURS), theirs, failed, lineages=[theirs]) == Reuse(theirs, True)


RANKED = [known(COMPENSATED), known(DONE), RUNNING, known(DOUBT), known(FAILED)]


@pytest.mark.parametrize("better", range(len(RANKED)))
@pytest.mark.parametrize("worse", range(len(RANKED)))
def test_of_one_effect_speaks_who_knows_most_and_of_equals_the_thread_itself(better: int, worse: int) -> None:
    theirs, ours = RANKED[better]._replace(thread_id="u"), RANKED[worse]
    assert spokesman([ours, theirs], "t") == spokesman([theirs, ours], "t") == (theirs if better < worse else ours)


def test_an_intent_that_nobody_is_at_is_a_doubt_like_any_other() -> None:
    lost, doubt = known(INTENT, thread="u"), known(DOUBT, thread="v")
    assert spokesman([doubt, lost], "t") == lost
    assert spokesman([doubt, lost], "v") == doubt


# -- where else a call looks ------------------------------------------------------------------------------------------


def test_what_counts_elsewhere_is_what_was_known_last_there_each_effect_once_and_not_its_own() -> None:
    after = known(DONE, renewed_key("x"), inputs="b")
    rows = [known(FAILED, "x"), after, known(DONE, "y", thread="u"), known(DOUBT, "y"), known(DONE)]

    def look_up(key: str) -> list[Known]:
        return [row for row in rows if row.key == key]

    assert counting(asked(), ["x", K, "y", renewed_key("x"), "nothing"], look_up, NOW) == [after, rows[2]]


def test_the_key_of_a_receipt_is_followed_only_when_that_is_too_old() -> None:
    old, after = known(DONE, "x", at=LONG_AGO), known(DONE, renewed_key("x"))
    rows = {"x": [old], renewed_key("x"): [after]}
    assert counting(asked(), ["x"], lambda key: rows.get(key, []), NOW) == [old]
    assert counting(asked(valid_for=VALID_FOR), ["x"], lambda key: rows.get(key, []), NOW) == [after]


def test_keys_are_followed_to_the_last_one() -> None:
    rows = {"x": [known(FAILED, "x")], renewed_key("x"): [known(FAILED, renewed_key("x"), inputs="b")]}
    last = known(DOUBT, renewed_key(renewed_key("x")), inputs="c")
    rows[last.key] = [last]
    assert counting(asked(), ["x"], lambda key: rows.get(key, []), NOW) == [last]


FORKS = [(0, None, None), (1, 0, 10), (2, 0, 10), (3, 1, 20), (4, 1, 21)]


@pytest.mark.parametrize(
    ("lineage", "others"),
    [
        (0, [1, 2, BROUGHT]),
        (1, [0, 2, 3, 4, BROUGHT]),
        (2, [0, 1, BROUGHT]),
        (3, [1, 0, 2, BROUGHT]),
        (4, [1, 0, 2, BROUGHT]),
    ],
)
def test_ancestors_answer_before_what_was_forked_from_the_same_checkpoint(lineage: int, others: list[int]) -> None:
    assert lineages_to_search(lineage, FORKS) == others


def test_a_place_is_known_by_what_was_done_there_last_and_by_the_keys_of_its_lineages_in_order() -> None:
    keys = keys_of_place("copy", 3, "p", FORKS, {1: ["x"], BROUGHT: ["y", "z"]}, [("t", 2)])
    assert keys == [
        position_key("copy", 3, "p"),
        "x",
        position_key("t", 1, "p"),
        position_key("t", 0, "p"),
        position_key("copy", 2, "p"),
        "y",
        "z",
    ]
