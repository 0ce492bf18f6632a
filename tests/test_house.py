"""The house: what one room asks about another, as `python -m tests.house` counts it.

That a new manifold works everywhere from its one file is in tests/manifolds/test_own_manifold.py.
"""

from tests import house


def test_budgets_say_themselves_what_they_are():
    assert len(house.class_checks(house.BUDGETS, {"privacy"})) <= 12


def test_manifolds_say_themselves_what_they_are():
    assert len(house.class_checks(house.manifold_classes(), {"manifolds"})) <= 20


def test_a_private_mean_walks_through_few_files_and_changes_room_seldom():
    files, changes = house.walk_of_a_mean()
    assert len(files) <= 28
    assert changes <= 110


def test_a_new_manifold_is_one_file():
    assert len(house.files_of_a_new_manifold()) == 1


def test_no_room_but_sums_and_the_wing_of_idealized_laws_reads_records_and_draws_noise():
    assert house.rooms_that_import("records", "noise") <= {"sums", "intrinsic"}


def test_default_releases_never_load_the_wing_of_idealized_laws():
    loaded = house.rooms_of_default_releases()
    assert {"releases", "sums"} <= loaded
    assert "intrinsic" not in loaded
