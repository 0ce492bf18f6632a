"""Messages of the Python layer in the words of the command line."""

from __future__ import annotations

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.manifolds import manifold_from_name
from dpmanifolds.show.words import flags_of, in_flags

FLAGS = {
    name: "--" + name.replace("_", "-") for name in ("radius", "numerics", "metric", "batch_size", "n", "components")
}


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (dpm.SPD(3, "log-euclidean"), "spd:3 (log-euclidean)"),
        (dpm.Correlation(4), "correlation:4"),
        (dpm.Sphere(2), "sphere:2"),
        (dpm.Hyperbolic(4), "hyperbolic:4"),
        (dpm.PlanarShapes(8), "shapes:8"),
        (dpm.Euclidean(5), "euclidean:5"),
        (dpm.SpecialOrthogonal(3), "rotations:3"),
        (dpm.Grassmann(5, 2), "grassmann:5,2"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_spaces_are_told_as_they_are_typed(space, words):
    assert in_flags(f"records must lie on {space!r}.", FLAGS) == f"records must lie on {words}."
    name, _, metric = words.partition(" ")
    assert manifold_from_name(name, metric.strip("()") or None) == space
    ball = dpm.Ball(space, space.random_point(rng=0), 0.5)
    assert in_flags(f"{ball!r} is small", FLAGS) == f"a ball of radius 0.5 on {words} is small"


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (dpm.PureDP(1.0), "ε = 1"),
        (dpm.ApproxDP(0.5, 1e-6), "ε = 0.5, δ = 1e-06"),
        (dpm.GaussianDP(0.25), "μ = 0.25"),
        (dpm.ZeroConcentratedDP(1e-3), "ρ = 0.001"),
    ],
    ids=["pure", "approximate", "gaussian", "concentrated"],
)
def test_budgets_are_told_in_their_letters(budget, words):
    assert in_flags(f"asked {budget!r}, of {budget!r}.", FLAGS) == f"asked {words}, of {words}."


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("the radius must be public", "the radius must be public"),
        ("a smaller radius is better", "a smaller radius is better"),
        ("Leave batch_size out. batch_size is large.", "Leave --batch-size out. --batch-size is large."),
        ("use numerics='idealized', or numerics=", "use --numerics idealized, or --numerics"),
        ("the option --radius must be given", "the option --radius must be given"),
    ],
)
def test_arguments_become_flags_where_they_are_meant(message, words):
    assert in_flags(message, FLAGS) == words


@pytest.mark.parametrize(
    ("argument", "message", "words"),
    [
        ("radius", "must be above 0; got 0.", "--radius must be above 0; got 0."),
        ("n", "= 5 is few", "--n 5 is few"),
        ("n_components", "must be 1", "--components must be 1"),
        ("points", "is empty.", "records is empty."),
        ("largest", "must be finite.", "the largest of --eigenvalues must be finite."),
        (
            "smallest",
            "must be below largest; got 2 and 1.",
            "--eigenvalues must be LOW HIGH, the smaller number first; got 2 and 1.",
        ),
        ("steps", "must be 1", "steps must be 1"),
    ],
)
def test_an_error_is_told_with_the_flag_of_its_argument(argument, message, words):
    error = dpm.ArgumentError(message, argument=argument)
    assert str(error) == f"{argument} {message}"
    assert in_flags(error, FLAGS) == words


def test_flags_are_those_of_the_command():
    import typer.main

    from dpmanifolds.cli import app

    commands = typer.main.get_command(app).commands
    mean, ledger = flags_of(commands["mean"]), flags_of(commands["ledger"])
    assert (mean["unit_scale"], mean["group_by"], mean["yes"]) == ("--unit-scale", "--group-by", "--yes")
    assert "files" not in mean
    assert "n" not in mean
    assert (ledger["filter"], ledger["name"]) == ("--filter", "--dataset")
    assert flags_of(None) == {}


def test_warnings_are_told_in_the_same_words(folder, typed, monkeypatch):
    import warnings

    def warned(*_args, **_kwargs):
        warnings.warn("radius=2 is large on Sphere(2, 1.0)", UserWarning, stacklevel=2)
        raise dpm.ArgumentError("stop")

    monkeypatch.setattr("dpmanifolds.releases.private_mean", warned)
    monkeypatch.setattr("sys.warnoptions", [])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        outcome = typed("mean directions.npy --manifold sphere:2 --center 0,0,1 --radius 0.5 --epsilon 1 --yes")
    assert "warning: --radius 2 is large on sphere:2" in outcome.stderr
    assert np.load("directions.npy").shape == (90, 3)
