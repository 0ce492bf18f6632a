"""Which cases the quick run takes, which the long run, and which neither."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

import dpmanifolds as dpm
from tests import selection
from tests.selection import leave_out_absent_libraries, leave_out_weak_cases, mark_long_cases, thorough


@dataclass(eq=False)
class Case:
    """What pytest says of one case of a test."""

    params: dict[str, Any]
    marks: list[pytest.Mark] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"test_it[{'-'.join(map(repr, self.params.values()))}]"

    nodeid = name

    @property
    def callspec(self) -> SimpleNamespace:
        return SimpleNamespace(params=self.params)

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [mark for mark in self.marks if mark.name == name]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next(iter(self.iter_markers(name)), None)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.mark)


def grid(*cases: dict[str, Any], **options: Any) -> list[Case]:
    return [Case(each, [pytest.mark.grid(**options).mark]) for each in cases]


def crossed(**axes: list[Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{}]
    for name, values in axes.items():
        found = [{**each, name: value} for each in found for value in values]
    return found


def quick(cases: list[Case]) -> list[dict[str, Any]]:
    """Parameters of the cases that the quick run takes."""
    mark_long_cases(cases)
    return [case.params for case in cases if not case.get_closest_marker("long")]


def test_every_value_comes_up_in_the_quick_run_and_few_cases_are_needed():
    taken = quick(grid(*crossed(budget=["pure", "zcdp", "renyi"], numerics=["lattice", "rounded"], n=[1, 10, 100])))
    assert len(taken) == 3
    assert {each["budget"] for each in taken} == {"pure", "zcdp", "renyi"}
    assert {each["numerics"] for each in taken} == {"lattice", "rounded"}
    assert {each["n"] for each in taken} == {1, 10, 100}


def test_manifolds_of_one_family_and_metric_count_as_one():
    spaces = [dpm.Sphere(2), dpm.Sphere(5), dpm.SPD(2), dpm.SPD(3), dpm.SPD(2, "log-euclidean")]
    taken = [each["space"] for each in quick(grid(*crossed(space=spaces)))]
    assert sorted(getattr(each, "metric", "") for each in taken) == ["", "affine-invariant", "log-euclidean"]


def test_parameters_that_were_given_together_count_together():
    pairs = [("a", 1), ("a", 2), ("b", 1)]
    cases = grid(*({"kind": kind, "size": size} for kind, size in pairs))
    for case in cases:
        case.marks.append(pytest.mark.parametrize(("kind", "size"), pairs).mark)
    assert len(quick(cases)) == 3


def test_at_most_so_many_cases_are_taken_and_only_these_values():
    everything = crossed(dim=[1, 2, 3, 4], kind=["a", "b"])
    assert len(quick(grid(*everything, at_most=2))) == 2
    assert {each["dim"] for each in quick(grid(*everything, dim=[2]))} == {2}


def test_a_grid_of_which_the_quick_run_takes_no_case_is_refused():
    with pytest.raises(AssertionError, match="no case of test_it"):
        mark_long_cases(grid(*crossed(dim=[1, 2]), dim=[7]))


def test_the_choice_is_the_same_in_every_run_and_in_any_order():
    everything = crossed(dim=list(range(6)), kind=["a", "b", "c"])
    taken = quick(grid(*everything))
    assert taken == quick(grid(*everything))
    assert sorted(map(str, quick(grid(*reversed(everything))))) == sorted(map(str, taken))


def test_cases_without_the_mark_and_cases_that_are_long_anyway_are_left_alone():
    plain = [Case(each) for each in crossed(dim=[1, 2])]
    assert len(quick(plain)) == 2
    cases = grid(*crossed(dim=[1, 2]))
    cases[0].marks.append(pytest.mark.long.mark)
    assert quick(cases) == [{"dim": 2}]


def test_a_thorough_test_has_its_few_draws_in_the_quick_run_and_its_many_in_the_long_one():
    few, many = thorough("draws", 300, 1000).args[1]
    assert (few.values, [mark.name for mark in few.marks]) == ((300,), ["quick"])
    assert (many.values, [mark.name for mark in many.marks]) == ((1000,), ["long"])
    few, many = thorough(("starts", "steps"), (4, 6), (6, 8)).args[1]
    assert (few.values, many.values) == ((4, 6), (6, 8))


def test_a_grid_has_its_many_draws_in_every_case_and_the_few_nowhere_but_in_the_quick_run():
    marks = {300: pytest.mark.quick.mark, 1000: pytest.mark.long.mark}
    cases = grid(*crossed(dim=[1, 2, 3], draws=[300, 1000]), at_most=1)
    for case in cases:
        case.marks.append(marks[case.params["draws"]])
    assert [each["draws"] for each in quick(cases)] == [300]
    left_out = leave_out_weak_cases(cases)
    assert [case.params["draws"] for case in left_out] == [300, 300]
    assert [case.params["dim"] for case in cases if case.params["draws"] == 1000] == [1, 2, 3]


def test_an_absent_library_is_told_of_once(monkeypatch):
    monkeypatch.setattr(selection, "find_spec", lambda name: None if name == "jax" else name)
    cases = [Case(each) for each in crossed(library=["numpy", "torch", "jax"], dim=[1, 2])]
    cases += [Case({}, [pytest.mark.needs(name).mark]) for name in ("torch", "jax")]
    assert [case.params for case in leave_out_absent_libraries(cases)] == [{"library": "jax", "dim": 2}, {}]
