"""The house: what one room asks about another, as `python -m tests.house` counts it."""

from tests import house


def test_budgets_say_themselves_what_they_are():
    assert len(house.class_checks(house.BUDGETS, {"privacy"})) <= 12


def test_manifolds_say_themselves_what_they_are():
    assert len(house.class_checks(house.manifold_classes(), {"manifolds"})) <= 20
