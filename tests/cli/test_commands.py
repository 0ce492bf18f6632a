"""Every command does its job on small made-up files."""

from __future__ import annotations

import importlib
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpmanifolds as dpm
from dpmanifolds.cli.options import Place
from dpmanifolds.cli.records import ball_from
from dpmanifolds.data import read_affine, read_nifti
from dpmanifolds.manifolds import manifold_from_name
from dpmanifolds.show import load_release

SPHERE = "--manifold sphere:2 --center 0,0,1 --radius 0.5"


pytestmark = pytest.mark.usefixtures("quick_pages")


def done(outcome):
    assert outcome.exit_code == 0, outcome.stderr
    return outcome


def test_mean_of_a_table_writes_the_release_and_its_report(folder, typed):
    outcome = done(
        typed("mean tensors.csv --layout upper --manifold spd:3 --eigenvalues 1e-5 1e-2 --epsilon 1 --yes --out out")
    )
    release = load_release("out")
    assert release.statistic == "mean"
    assert release.n == 60
    assert release.spent == dpm.PureDP(1.0)
    assert not release.reproducible
    assert Path("out/report.html").is_file()
    with np.load("out/release.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["value"], release.value)
    assert "wrapped-laplace" in outcome.stderr
    assert "out/release.json" in outcome.stdout


def test_mean_with_a_seed_is_what_python_gives(folder, typed):
    done(typed(f"mean directions.npy {SPHERE} --epsilon 1 --yes --seed 7 --out out"))
    ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), 0.5)
    assert load_release("out") == dpm.private_mean(np.load("directions.npy"), ball, dpm.PureDP(1.0), rng=7)


def test_a_public_sample_is_what_python_makes_of_it(folder, typed):
    directions = np.load("directions.npy")
    np.save("public.npy", directions[:20])
    np.save("private.npy", directions[20:])
    ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), 0.5)
    done(typed(f"mean private.npy {SPHERE} --public-sample public.npy --epsilon 1 --yes --seed 7 --out out"))
    known = {"public_sample": directions[:20], "rng": 7}
    assert load_release("out") == dpm.private_mean(directions[20:], ball, dpm.PureDP(1.0), **known)
    told = done(typed(f"plan {SPHERE} --n 40 --epsilon 1 --public-sample public.npy")).stdout
    assert "public sample" in told
    refused = typed(f"mean private.npy {SPHERE} --public-sample private.npy --epsilon 1 --yes --out other")
    assert refused.exit_code == 2
    assert "PUBLIC" in refused.stderr


def test_records_of_a_person_count_as_one(folder, typed):
    done(typed(f"mean directions.npy {SPHERE} --epsilon 1 --yes --group-by persons.txt --out out"))
    assert load_release("out").n == 30


def test_mean_of_landmarks_knows_its_manifold(folder, typed):
    done(typed("mean wings.tps --center template.csv --radius 0.2 --epsilon 1 --yes --out out"))
    assert load_release("out").manifold == dpm.PlanarShapes(8)


def test_tensor_maps_of_several_persons_give_a_map_in_the_same_space(folder, typed):
    done(
        typed(
            "mean sub-0.nii.gz sub-1.nii.gz sub-2.nii.gz sub-3.nii.gz --layout upper --mask mask.nii.gz "
            "--unit-scale 1000 --eigenvalues 0.01 10 --epsilon 500 --yes --out out"
        )
    )
    release = load_release("out")
    assert release.manifold == dpm.Power(dpm.SPD(3, "log-euclidean"), 8)
    assert release.n == 4
    image, mask = read_nifti("out/mean.nii.gz"), read_nifti("mask.nii.gz") != 0
    np.testing.assert_array_equal(read_affine("out/mean.nii.gz"), np.diag([2.0, 2.0, 2.5, 1.0]))
    assert np.all(image[~mask] == 0)
    # xx, xy, xz, yy, yz, zz, in the unit of the files
    np.testing.assert_allclose(image[mask][:, 3] * 1000, release.value[:, 1, 1], rtol=1e-14)


def test_voxels_of_one_map_are_records_and_the_promise_says_so(folder, typed):
    outcome = done(
        typed("mean sub-0.nii.gz --layout upper --mask mask.nii.gz --eigenvalues 1e-5 1e-2 --epsilon 5 --yes --out out")
    )
    assert load_release("out").guarantee.unit == "voxel"
    assert "not a person" in outcome.stderr


def test_a_unit_scale_multiplies_the_records(folder, typed):
    line = "mean eeg.npz --key cov --manifold spd:3 --radius 3 --unit-scale 1e10 --epsilon 1 --yes --seed 3 --out out"
    done(typed(line))
    scaled = 1e10 * np.load("eeg.npz")["cov"]
    ball = dpm.Ball(dpm.SPD(3), np.eye(3), 3.0)
    assert load_release("out") == dpm.private_mean(scaled, ball, dpm.PureDP(1.0), rng=3)
    assert "multiplied by 1e+10" in Path("out/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        ("--epsilon 1 --delta 1e-6", dpm.ApproxDP),
        ("--mu 0.5", dpm.GaussianDP),
        ("--rho 0.2", dpm.ZeroConcentratedDP),
    ],
    ids=["approximate", "gaussian", "zcdp"],
)
def test_variance_within_every_kind_of_budget(folder, typed, budget, spent):
    outcome = done(typed(f"variance directions.npy {SPHERE} {budget} --yes --quiet --out out"))
    release = load_release(outcome.stdout.strip())
    assert isinstance(release.spent, spent)
    assert 0 <= release.value <= 0.25


def test_median_and_descent(folder, typed):
    done(typed(f"median directions.npy {SPHERE} --epsilon 1 --delta 1e-6 --yes --out first"))
    done(typed(f"descend directions.npy {SPHERE} --loss median --steps 5 --epsilon 1 --delta 1e-6 --yes --out second"))
    done(typed(f"descend directions.npy {SPHERE} --steps 5 --epsilon 1 --delta 1e-6 --yes --out third"))
    for name, statistic in (("first", "median"), ("second", "median"), ("third", "mean")):
        release = load_release(name)
        assert release.statistic == statistic
        assert release.domain.contains(release.value)
        assert release.guarantee.fits(dpm.ApproxDP(1.0, 1e-6))


@pytest.mark.parametrize("command", ["median", "descend"])
def test_a_state_goes_with_a_ledger_and_is_charged_once(folder, typed, command):
    words = f"{command} directions.npy {SPHERE} --steps 5 --epsilon 1 --delta 1e-6 --yes --state run.json"
    outcome = typed(f"{words} --out none")
    assert outcome.exit_code == 2
    assert "--state needs --ledger" in outcome.stderr
    done(typed("ledger open privacy.ledger --dataset study --epsilon 2 --delta 1e-6 --unit record"))
    for name in ("first", "second"):
        done(typed(f"{words} --ledger privacy.ledger --dataset study --out {name}"))
    assert load_release("first") == load_release("second")
    assert len(dpm.Ledger("privacy.ledger").entries()) == 2


def test_pca_of_vectors_finds_the_long_axes(folder, typed):
    np.save("many.npy", np.tile(np.load("vectors.npy"), (50, 1)))
    done(typed("pca many.npy --manifold euclidean:4 --radius 10 --components 2 --mu 1 --yes --out out"))
    with np.load("out/components.npz", allow_pickle=False) as found:
        assert found["components"].shape == (2, 4)
        assert np.abs(found["components"][0, 0]) > 0.9
        assert found["explained_variance"][0] > found["explained_variance"][1]
    assert load_release("out/second-moment").guarantee.fits(dpm.GaussianDP(1.0))


def test_pca_of_tensors_releases_a_mean_first(folder, typed):
    done(
        typed(
            'pca tensors.csv --layout upper --manifold spd:3 --center "1e-3*I" --radius 2 --components 1 --mu 1 --yes '
            "--out out"
        )
    )
    assert load_release("out/mean").statistic == "mean"
    with np.load("out/components.npz", allow_pickle=False) as found:
        assert found["components"].shape == (1, 6)


def test_a_plan_reads_no_file_and_writes_what_it_is_asked_to(folder, typed):
    outcome = done(
        typed(
            "plan --manifold spd:3 --eigenvalues 1e-4 3e-3 --n 500 --epsilon 1 --error 0.05 --csv plan.csv "
            "--plot plan.png"
        )
    )
    assert "wrapped-laplace" in outcome.stdout
    assert Path("plan.csv").read_text(encoding="utf-8").startswith("budget,mechanism")
    assert Path("plan.png").read_bytes().startswith(b"\x89PNG")
    assert max(map(len, outcome.stdout.splitlines())) <= 80


def test_the_planner_page_opens_at_what_was_asked_for_or_at_nothing(folder, typed):
    assert done(typed("plan --html first.html")).stdout.strip() == "first.html"
    done(typed(f"plan {SPHERE} --n 123 --epsilon 1 --html second.html"))
    assert "123" in Path("second.html").read_text(encoding="utf-8")
    assert Path("first.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert typed("plan --html first.html").exit_code == 2


def test_a_plan_shares_a_budget_between_releases(folder, typed):
    outcome = done(typed("plan --manifold spd:2 --radius 1 --n 500 --epsilon 1 --delta 1e-6 --releases 4"))
    assert "each of 4 releases" in " ".join(outcome.stdout.split())
    assert "ε = 0.25" in outcome.stdout


def test_an_audit_passes_the_mechanism_and_catches_one_with_half_the_noise(folder, typed):
    line = f"audit {SPHERE} --n 200 --epsilon 1 --draws 3000 --seed 0"
    assert "not broken" in done(typed(line)).stdout
    caught = typed(f"{line} --noise-factor 0.5")
    assert caught.exit_code == 1
    assert "broken" in caught.stdout


def test_a_ledger_is_opened_charged_shown_verified_and_exported(folder, typed):
    done(typed("ledger open privacy.ledger --dataset clinic --epsilon 1"))
    outcome = done(typed(f"mean directions.npy {SPHERE} --epsilon 0.75 --yes --ledger privacy.ledger --dataset clinic"))
    assert "ε = 1 left before this" in outcome.stderr
    shown = done(typed("ledger show privacy.ledger --dataset clinic")).stdout
    assert re.search(r"clinic\s+ε = 1\s+ε = 0.75\s+ε = 0.25", shown)
    assert "mean" in shown
    assert "2 entries, intact" in done(typed("ledger verify privacy.ledger")).stdout
    entries = json.loads(done(typed("ledger export privacy.ledger")).stdout)["ledger"]
    assert [entry["kind"] for entry in entries] == ["open", "spend"]
    done(typed("ledger export privacy.ledger --format csv --out log.csv"))
    assert Path("log.csv").read_text(encoding="utf-8").startswith("number,when")
    assert typed("ledger export privacy.ledger --out log.csv").exit_code == 2


def test_who_is_asked_and_says_no_spends_nothing(folder, typed, monkeypatch):
    monkeypatch.setattr("dpmanifolds.cli.spend.at_terminal", lambda: True)
    done(typed("ledger open privacy.ledger --dataset clinic --epsilon 1"))
    line = f"mean directions.npy {SPHERE} --ledger privacy.ledger --dataset clinic --out out"
    refused = typed(line, answers="0.5\nn\n")
    assert refused.exit_code == 1
    assert "Nothing was spent" in refused.stderr
    assert dpm.Ledger("privacy.ledger").spent("clinic") is None
    done(typed(line, answers="0.5\ny\n"))
    assert dpm.Ledger("privacy.ledger").spent("clinic") == dpm.PureDP(0.5)


def test_a_release_that_cannot_be_written_is_printed_as_it_has_been_paid_for(folder, typed, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpmanifolds.cli.spend.save_release", full)
    outcome = typed(f"mean directions.npy {SPHERE} --epsilon 1 --yes --out out")
    assert outcome.exit_code != 0
    assert dpm.Release.from_json(outcome.stdout).statistic == "mean"


def test_principal_components_that_cannot_be_written_are_refused_before_or_printed(folder, typed, monkeypatch):
    done(typed(f"mean directions.npy {SPHERE} --epsilon 1 --yes --out out/mean"))
    typed("ledger open privacy.ledger --dataset d --mu 5")
    line = f"pca directions.npy {SPHERE} --mu 1 -k 1 --yes --ledger privacy.ledger --dataset d --out out"
    assert typed(line).exit_code == 2
    assert dpm.Ledger("privacy.ledger").spent("d") is None

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpmanifolds.show.save_release", full)
    printed = typed(f"{line} --overwrite")
    assert printed.exit_code != 0
    releases = [dpm.Release.from_json(text) for text in printed.stdout.splitlines()]
    assert [release.statistic for release in releases] == ["mean", "second moment"]


def test_report_and_info_explain_a_release(folder, typed):
    done(typed(f"mean directions.npy {SPHERE} --epsilon 1 --yes --out out"))
    assert done(typed("report out --out board.html")).stdout.strip() == "board.html"
    assert "guesses right" in Path("board.html").read_text(encoding="utf-8")
    assert typed("report out --out board.html").exit_code == 2
    assert "The promise" in done(typed("info out")).stdout
    assert "The promise" in done(typed("info out/release.json")).stdout


def test_info_tells_shapes_and_nothing_else_of_records(folder, typed):
    assert done(typed("info eeg.npz")).stdout == "cov: 50 × 3 × 3\nother: 3\n"
    assert done(typed("info sub-0.nii.gz")).stdout == "sub-0.nii.gz: 3 × 3 × 2 × 6\n"
    assert done(typed("info directions.npy")).stdout == "directions.npy: 90 × 3\n"
    assert "wrapped-laplace" in done(typed("info")).stdout


def test_the_demonstration_shows_its_commands_and_leaves_a_release_in_the_folder_that_is_named(folder, typed):
    for _ in range(2):
        said = done(typed("demo --out 'over here'")).stdout
        assert re.findall(r"^\$ dpmanifolds (\w+)", said, flags=re.MULTILINE) == ["plan", "mean", "info"]
        assert "The promise" in said
    release = load_release(Path("over here", "release"))
    assert f"The report: {Path('over here', 'release', 'report.html')}, with its figure" in said
    assert release.spent == dpm.PureDP(1.0)
    assert release.n == 898
    assert bool(release.domain.contains(release.value))


def test_the_demonstration_ends_with_the_code_of_a_command_that_fails(folder, typed):
    Path("out").mkdir()
    Path("out", "release").write_text("in the way", encoding="utf-8")
    ended = typed("demo")
    assert ended.exit_code == 2
    assert "$ dpmanifolds info" not in ended.stdout


@pytest.mark.parametrize(
    "name",
    ["mean", "median", "variance", "pca", "descend", "regress", "plan", "audit", "ledger", "report", "info", "demo"],
)
def test_every_command_has_help(typed, name):
    assert name in done(typed([name, "--help"])).stdout


@pytest.mark.parametrize(
    ("text", "manifold"),
    [
        ("spd:3", dpm.SPD(3)),
        ("correlation:5", dpm.Correlation(5)),
        ("sphere:2", dpm.Sphere(2)),
        ("hyperbolic:2", dpm.Hyperbolic(2)),
        ("shapes:12", dpm.PlanarShapes(12)),
        ("euclidean:5", dpm.Euclidean(5)),
        ("rotations:3", dpm.SpecialOrthogonal(3)),
        ("grassmann:5,2", dpm.Grassmann(5, 2)),
    ],
    ids=["spd", "correlation", "sphere", "hyperbolic", "shapes", "euclidean", "rotations", "grassmann"],
)
def test_manifolds_are_named(text, manifold):
    assert manifold_from_name(text) == manifold


def test_balls_are_described_in_five_ways(folder):
    assert ball_from(Place(radius=2.0, center="4.5e-4*I"), dpm.SPD(2)).center[0, 0] == 4.5e-4
    assert ball_from(Place(radius=2.0, center="origin"), dpm.Hyperbolic(2)).radius == 2.0
    assert (
        ball_from(Place(eigenvalues=(0.1, 10.0)), dpm.SPD(3)).radius
        == dpm.Ball.from_eigenvalues(dpm.SPD(3), 0.1, 10).radius
    )
    assert ball_from(Place(bounds=Path("bounds.csv")), dpm.Euclidean(4)).radius == pytest.approx(18.0)
    assert (
        ball_from(Place(positive_orthant=True), dpm.Sphere(3)).radius == dpm.Ball.positive_orthant(dpm.Sphere(3)).radius
    )
    assert ball_from(Place(reference=Path("vectors.npy")), dpm.Euclidean(4)).radius > 3


def test_a_centre_given_as_a_direction_is_scaled_to_the_sphere():
    np.testing.assert_allclose(ball_from(Place(radius=0.5, center="0,3,4"), dpm.Sphere(2)).center, [0, 0.6, 0.8])


def test_the_ball_of_a_map_holds_every_map_whose_tensors_lie_in_the_ball_of_one():
    one, space = (
        dpm.Ball.from_eigenvalues(dpm.SPD(3, "log-euclidean"), 0.1, 10.0),
        dpm.Power(dpm.SPD(3, "log-euclidean"), 5),
    )
    ball = ball_from(Place(eigenvalues=(0.1, 10.0)), space)
    worst = np.broadcast_to(0.1 * np.eye(3), (5, 3, 3))
    assert ball.contains(worst)
    assert ball.radius == pytest.approx(np.sqrt(5) * one.radius)


def test_the_installed_program_is_this_one():
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    room, _, name = project["scripts"]["dpmanifolds"].partition(":")
    assert callable(getattr(importlib.import_module(room), name))


def test_an_earlier_map_is_not_lost(folder, typed):
    line = "mean sub-0.nii.gz sub-1.nii.gz --layout upper --mask mask.nii.gz --eigenvalues 1e-5 1e-2 --epsilon 9 --yes"
    Path("out").mkdir()
    Path("out/mean.nii.gz").write_bytes(b"precious")
    assert typed(f"{line} --out out").exit_code == 2
    assert Path("out/mean.nii.gz").read_bytes() == b"precious"
    done(typed(f"{line} --out out --overwrite"))
    assert read_nifti("out/mean.nii.gz").shape == (3, 3, 2, 6)


def test_the_version_is_told(typed):
    assert done(typed("--version")).stdout.strip() == f"dpmanifolds {dpm.__version__}"


def test_a_plan_for_an_error_tells_the_budget_it_found(typed):
    assert "Budget: ε = " in done(typed(f"plan {SPHERE} --n 200 --error 0.02")).stdout


def test_a_release_that_nobody_confirms_leaves_nothing_behind(folder, typed):
    outcome = typed("mean tensors.csv --layout upper --manifold spd:3 --eigenvalues 1e-5 1e-2 --epsilon 1 --out fresh")
    assert outcome.exit_code != 0
    assert not Path("fresh").exists()


def test_noise_as_large_as_the_ball_is_said_before_the_question_and_after_the_release(folder, typed):
    words = "the noise is larger than the ball: this release says little more than the public centre"
    line = "mean tensors.csv --layout upper --manifold spd:3 --eigenvalues 1e-5 1e-2 --epsilon 0.05"
    asked = typed(line)
    assert asked.exit_code == 2
    assert words in " ".join(asked.stderr.split())
    outcome = done(typed(f"{line} --yes --out out"))
    assert " ".join(outcome.stderr.split()).count(words) == 1
    assert words in " ".join(outcome.stdout.split())
    assert words in Path("out/report.html").read_text(encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        quiet = done(typed(f"{line} --yes --quiet --out other"))
    assert " ".join(quiet.stderr.split()) == f"warning: {words}"


def test_plan_tells_when_the_mean_is_useful(folder, typed):
    line = "plan --manifold spd:3 --radius 1 --n 500 --epsilon 1"
    without = " ".join(done(typed(line)).stdout.split())
    assert "left out: it takes --spread, the root mean square distance" in without
    assert "The public centre alone is better if the mean lies closer to it than 0.0154." in without
    told = " ".join(done(typed(f"{line} --spread 0.2 --offset 0.1")).stdout.split())
    assert "× sampling" in told
    assert "The noise errs as much at n = 3600, and less beyond." in told
    assert "expected to beat the centre alone from n = 75 on." in told
    assert "--offset must be at most the radius 1" in typed(f"{line} --offset 2").stderr
