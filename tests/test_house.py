"""The house: what one room asks about another, as `python -m tests.house` counts it.

That a new manifold works everywhere from its one file is in tests/manifolds/test_own_manifold.py.
"""

from tests import house

MOST_FILES, MOST_LINES = 279, 56_350
"""Of the wheel. Who needs more raises them, and says so in the change; CONTRIBUTING.md tells where the lines are."""
LAYERS = {
    "errors": 0,
    "_arrays": 0,
    "_points": 0,
    "_validate": 0,
    "_words": 0,
    "noise": 1,
    "manifolds": 2,
    "domains": 2,
    "records": 3,
    "statistics": 3,
    "data": 3,
    "privacy": 4,
    "sums": 5,
    "ledger": 5,
    "intrinsic": 6,
    "descent": 7,
    "releases": 7,
    "estimators": 8,
    "planning": 8,
    "auditing": 8,
    "federated": 8,
    "cli": 9,
    "show": 9,
    "__main__": 9,
}


def test_rooms_import_nothing_above_them():
    for path in house.modules():
        room = house.room_of(path)
        if room != "__init__":
            assert room in LAYERS, f"give {room} a layer"
            above = {other for other in house.imported_rooms(path) if LAYERS[other] > LAYERS[room]}
            assert not above, path.relative_to(house.HOME)


def test_rooms_import_nothing_that_stays_out_of_the_wheel():
    outside = {"papers", "audits", "examples", "docs", "benchmarks", "tests"}
    for path in house.modules():
        taken = {name.split(".")[0] for name in house.imported_modules(path)}
        assert not taken & outside, path.relative_to(house.HOME)


def test_only_rooms_list_what_they_offer():
    assert not house.lists_outside_of_rooms()


def test_every_file_fits_one_sitting():
    assert not house.long_files()


def test_the_house_does_not_grow_unseen():
    assert house.files_in_the_wheel() <= MOST_FILES
    assert sum(lines.total for lines in house.lines_by_room().values()) <= MOST_LINES


def test_tests_look_inside_only_where_no_public_behaviour_shows_it():
    assert house.tests_of_private_names() == set(house.TESTS_OF_INSIDES)


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
