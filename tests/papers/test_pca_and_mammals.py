"""The two studies of private optimisation run small, on synthetic data, and say what they saw."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from dpmanifolds import ApproxDP, ArgumentError
from dpmanifolds.privacy import compose
from papers import mammals, private_pca
from papers._bingham import bingham, sequential_eigenvectors
from papers._study import CONFIRMED, NOT_REPRODUCIBLE, Setting


@pytest.mark.long
def test_the_pca_study_compares_at_equal_promises(monkeypatch):
    monkeypatch.delenv(private_pca.PEER_VARIABLE, raising=False)
    result = private_pca.run(Setting("smoke", np.random.default_rng(0)))
    (panel,) = result.panels
    series = result.series(panel)
    best = series["exact components (not private)"][:, 1]
    for name, points in series.items():
        assert points[:, 0].tolist() == [0.1, 1.0, 10.0], name
        assert np.all(points[:, 1] <= best + 1e-9), name
    assert series["ours, (ε, 10⁻⁶)"][2, 1] > 0.95 * best[2]
    assert series["ours, pure ε"][2, 1] > series["no information: a random subspace"][2, 1]
    assert set(series) >= {"by descent, (ε, 10⁻⁶)", "by descent, pure ε"}
    says = {claim.says: claim for claim in result.claims}
    assert says['at (ε, 10⁻⁶) "auto" is not worse than "descent"'].verdict == CONFIRMED
    assert " ± " in says["at pure ε it is not worse than the eigenvectors of Amin et al. 2019"].sees
    assert result.claims[-1].verdict == NOT_REPRODUCIBLE
    assert "DPMANIFOLDS_PEER" in result.claims[-1].sees


def test_worse_means_by_more_than_four_standard_errors_at_some_epsilon():
    even, low, noisy = [0.5, 0.51, 0.49], [0.4, 0.41, 0.39], [0.3, 0.7, 0.35]
    assert private_pca._against({1.0: {"a": even, "b": low}}, "a", "b")[1]
    told, holds = private_pca._against({0.1: {"a": even, "b": low}, 1.0: {"a": low, "b": even}}, "a", "b")
    assert not holds
    assert "0.4000 ± 0.0058 against 0.5000 ± 0.0058 at ε = 1" in told
    assert private_pca._against({1.0: {"a": noisy, "b": even}}, "a", "b")[1]
    assert private_pca._against({0.1: {"a": low}, 1.0: {"a": even, "b": low}}, "a", "b")[0].count("against") == 1


def test_a_peer_that_is_no_python_or_lacks_the_library_is_refused(monkeypatch):
    table = np.ones((3, 4))
    with pytest.raises(ArgumentError, match="interpreter"):
        private_pca._of_peer("no-such-python", table, 1, 1.0, 1.0, 1, 5.0)
    monkeypatch.setattr(private_pca, "_PEER_SCRIPT", "import a_library_that_nobody_has")
    with pytest.raises(ArgumentError, match="has no diffprivlib"):
        private_pca._of_peer(sys.executable, table, 1, 1.0, 1.0, 1, 5.0)


def test_a_peer_gets_the_table_and_gives_components_back_or_nothing(monkeypatch):
    table = np.arange(12.0).reshape(3, 4)
    monkeypatch.setattr(
        private_pca, "_PEER_SCRIPT", "import sys, numpy as np; np.save(sys.argv[2], [np.load(sys.argv[1])[:1]])"
    )
    assert np.array_equal(private_pca._of_peer(sys.executable, table, 1, 1.0, 1.0, 1, 5.0), table[None, :1])
    monkeypatch.setattr(private_pca, "_PEER_SCRIPT", "pass")
    assert private_pca._of_peer(sys.executable, table, 1, 1.0, 1.0, 1, 5.0) is None


@pytest.mark.long
def test_bingham_vectors_have_their_second_moment():
    """Density ∝ exp(a·cos²θ): E cos²θ = ½ + I₁(a/2)/(2·I₀(a/2)); n = 4000, 5 standard errors of at most 0.006."""
    from scipy.special import iv

    rng = np.random.default_rng(0)
    for strength in (0.5, 4.0):
        found = np.mean([bingham(np.array([strength, 0.0]), rng)[0] ** 2 for _ in range(4000)])
        exact = 0.5 + iv(1, strength / 2) / (2 * iv(0, strength / 2))
        wrong = 0.5 + iv(1, 0.7 * strength / 2) / (2 * iv(0, 0.7 * strength / 2))
        assert found == pytest.approx(exact, abs=0.03)
        assert strength < 1 or abs(found - wrong) > 0.03


def test_sequential_eigenvectors_are_orthonormal_and_right_without_noise():
    moment = np.diag([5.0, 3.0, 1.0, 0.5])
    rows = sequential_eigenvectors(moment, 3, epsilon=1e9, radius=1.0, rng=0)
    assert np.allclose(rows @ rows.T, np.eye(3), atol=1e-9)
    assert np.allclose(np.abs(rows), np.eye(4)[:3], atol=1e-3)


def test_the_mammals_study_runs_on_a_tree_where_there_is_no_file():
    result = mammals.run(Setting("smoke", np.random.default_rng(0)))
    assert result.title.startswith("A binary tree: 31 nodes")
    series = result.series(result.panels[0])
    assert len(series) == 5
    for points in series.values():
        assert np.all((points[:, 1] > 0) & (points[:, 1] <= 1))
    free = series["no noise (not private)"][-1, 1]
    assert free > series["no information: scattered nodes"][-1, 1]
    assert len(result.claims) == 3
    assert series["ours, (1, 10⁻⁶)"][:, 0].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_counts_and_steps_of_a_private_embedding_keep_the_budget_together(monkeypatch):
    """What is charged for the two parts composes to the (ε, δ) of the figure, with hardly anything left over."""
    parts = []
    for name in ("privatize", "private_descent"):
        original = getattr(mammals, name)

        def watched(*given, original=original, **options):
            parts.append(original(*given, **options).guarantee)
            return original(*given, **options)

        monkeypatch.setattr(mammals, name, watched)
    setting = Setting("smoke", np.random.default_rng(0))
    mammals._private(setting, *mammals._edges(setting)[:2], 1.0)
    assert [guarantee.unit for guarantee in parts] == ["edge", "edge"]
    together = compose(*parts)
    assert together.fits(ApproxDP(1.0, 1e-6))
    assert not together.fits(ApproxDP(0.999, 1e-6))


def test_average_precision_is_that_of_a_ranking():
    distance = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    assert mammals.mean_average_precision(distance, np.array([[0, 1], [0, 2]])) == 1.0
    assert mammals.mean_average_precision(distance, np.array([[0, 2]])) == 0.5
    assert mammals.mean_average_precision(distance, np.array([[0, 2], [1, 0]])) == 0.75


def test_edges_are_read_from_the_file(tmp_path):
    (tmp_path / "hyperbolic").mkdir()
    (tmp_path / "hyperbolic" / "wordnet_mammal_closure.csv").write_text(
        "id1,id2,weight\nlion,cat,1\ncat,mammal,1\nlion,mammal,1\ncat,cat,1\n", encoding="utf-8"
    )
    edges, nodes, source = mammals._edges(Setting("smoke", data=tmp_path))
    assert nodes == 3
    assert edges.tolist() == [[1, 0], [0, 2], [1, 2]]
    assert "WordNet" in source
    assert math.prod(edges.shape) == 6
