"""Every reproduced figure runs at smoke size on synthetic records, and its verdicts come from its numbers."""

from __future__ import annotations

import functools
import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from dpmanifolds import ArgumentError, Sphere
from papers import names, reproduce
from papers.__main__ import main
from papers._study import (
    CONFIRMED,
    CORRECTED,
    NOT_REPRODUCIBLE,
    Numbers,
    Result,
    Setting,
    claim,
    compared,
    draw_to,
    run_study,
)

TABLES = Path(__file__).parents[2] / "docs" / "tables"


KNOWN = {
    "errata": {
        "E|u|² = d(d − 1)": CORRECTED,
        "σ²d(D + 1)": CONFIRMED,
        "the K-norm gradient with σ = Δ/ε is ε-private": CORRECTED,
        "σ = 2Δ/ε makes the K-norm gradient": CONFIRMED,
        "δ(1) = 0.0880": CORRECTED,
        "exp⁻¹(x, y) points along": CORRECTED,
        "dist² is 2-strongly convex": CONFIRMED,
    },
    "han-1": {"(c = 1) is (0.1, 1e−3)-private": CORRECTED, "L₀ = D bounds": CORRECTED},
    "utpala-1": {"increases ln(1.25/δ) from 2.4 to 3.1": CORRECTED, "O(k⁴) for the Laplace": CONFIRMED},
    "utpala-2": {"Δ = 2·3|ln η|/n": CORRECTED, "|ln η| ≈ 13.8": CONFIRMED},
    "jiang-1": {"√(π/2)·ε": CONFIRMED, "almost exactly the line's": CONFIRMED},
    "reimherr-1": {"has Euclidean sensitivity 2(e^r − 1)/n": CORRECTED, "at most 2r/n": CONFIRMED},
    "soto-1": {"strictly smaller than the Laplace's": CONFIRMED},
    "soto-2": {"409 corpus callosa": NOT_REPRODUCIBLE},
    "comparison": {"the K-norm gradient outperforms": CORRECTED},
}


@functools.cache
def smoke(name: str) -> Result:
    return run_study(name, Setting("smoke", np.random.default_rng(1)))


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("name", names())
def test_every_study_runs_and_its_verdicts_follow_from_its_numbers(name, tmp_path):
    result = smoke(name)
    assert (result.name, result.size) == (name, "smoke")
    assert len(result.numbers.rows) > 3
    assert all(math.isfinite(value) for value in result.columns["value"])
    assert {one.verdict for one in result.claims} <= {CONFIRMED, CORRECTED, NOT_REPRODUCIBLE}
    assert not any("nan" in one.sees for one in result.claims)
    assert result.failures == []
    for words, verdict in KNOWN.get(name, {}).items():
        assert [one.verdict for one in result.claims if words in one.says] == [verdict], words
    rows = "".join(path.read_text(encoding="utf-8") for path in TABLES.glob("papers-*.csv"))
    assert not [one.says for one in result.claims if one.says.replace('"', '""') not in rows]
    if importlib.util.find_spec("matplotlib"):
        assert draw_to(result, tmp_path / "figure.png")
        assert (tmp_path / "figure.png").stat().st_size > 2_000


def test_a_verdict_follows_from_the_number_and_its_error():
    assert compared("here", "about 1", 1.05, (0.9, 1.1)).verdict == CONFIRMED
    assert compared("here", "about 1", 1.5, (0.9, 1.1), error=0.05).verdict == CORRECTED
    assert compared("here", "about 1", 1.5, (0.9, 1.1), error=0.11).verdict == CONFIRMED
    assert claim("here", "yes", "no", False).verdict == CORRECTED


def test_columns_and_series_hold_the_same_numbers():
    numbers = Numbers()
    numbers.add("panel", "a", 1.0, 2.0)
    numbers.add_sample("panel", "b", 1.0, np.array([1.0, 3.0]))
    result = Result("jiang-1", "title", numbers, ())
    assert result.columns["value"] == [2.0, 2.0]
    np.testing.assert_allclose(result.series("panel")["b"], [[1.0, 2.0, 0.0, 4.0]])


@pytest.fixture
def small(monkeypatch):
    """`reproduce` with a result that costs nothing."""
    numbers = Numbers()
    numbers.add("Circle S¹, Δ = 1", "exact", 1.0, 1.0)
    made = Result("jiang-1", "title", numbers, (claim("here", "a|b", "c", False),), "quick")
    monkeypatch.setattr("papers._study.run_study", lambda name, setting: made)
    monkeypatch.setattr("papers._study.draw_to", lambda result, path: False)
    return made


def test_reproduce_writes_numbers_and_verdicts(tmp_path, small):
    assert reproduce("jiang-1", quick=True, out=tmp_path) is small
    rows = (tmp_path / "jiang-1.csv").read_text(encoding="utf-8").splitlines()
    assert rows == ["panel,series,x,value,low,high", '"Circle S¹, Δ = 1",exact,1.0,1.0,nan,nan']
    table = (tmp_path / "jiang-1.md").read_text(encoding="utf-8").splitlines()
    assert table[2] == "| here | a\\|b | c | **corrected** |"


def test_the_module_runs_studies_by_name(tmp_path, small, capsys):
    main(["all", "--quick", "--out", str(tmp_path)])
    told = capsys.readouterr().out
    assert told.count("corrected") == len(names())
    assert "install matplotlib" in told


def test_unknown_names_and_folders_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="name"):
        reproduce("nobody-1")
    with pytest.raises(ArgumentError, match="folder"):
        reproduce("errata", data=tmp_path / "nothing")


def test_image_and_shape_files_are_read_where_they_are(tmp_path):
    from papers._images import image_sets
    from papers._shapes import shape_sets

    rng = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    (tmp_path / "shapes").mkdir()
    np.savez(tmp_path / "images" / "mnist10k.npz", x=np.zeros((10, 6, 6), np.uint8), y=np.arange(10) % 5)
    np.savez(tmp_path / "shapes" / "drosophila_cactophilic_wings.npz", x=rng.normal(size=(20, 9, 2)))
    setting = Setting("smoke", data=tmp_path)
    (images,) = image_sets(setting)
    assert images.counts == [2, 2, 2, 2]
    (shapes,) = shape_sets(setting)
    assert shapes.records.shape == (20, 9)
    assert len(shapes.public) + len(shapes.private) == 20
    assert image_sets(Setting("smoke"))[0].name == "synthetic stripes"


def test_means_of_many_data_sets_are_the_means_of_each():
    from dpmanifolds import frechet_mean
    from papers._draws import means_of, polar_records

    records = polar_records(0.5, (3, 12), np.random.default_rng(0))
    each = np.stack([frechet_mean(Sphere(2), one).point for one in records])
    np.testing.assert_allclose(means_of(Sphere(2), records), each, atol=1e-9)
