"""The house: what one room asks about another, as `python -m tests.house` counts it.

That the default path never loads the wing `intrinsic` is in tests/test_package.py, that a new manifold is one file in
tests/manifolds/test_own_manifold.py.
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


def test_one_room_below_the_front_door_reads_records_and_draws_noise():
    assert house.rooms_that_import("records", "noise") <= {"sums", "intrinsic", "descent"}
