"""Integers on a device: those of the host up to a step, and of each record alone, hard ones included.

Without an accelerator PyTorch and JAX on the processor stand in for one: the formulas, and the kernels interpreted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpmanifolds import SPD
from dpmanifolds.domains.axes import Axes
from dpmanifolds.manifolds import _log_triangle
from dpmanifolds.records import source
from dpmanifolds.statistics.kernels import integers
from dpmanifolds.statistics.kernels.integers import BallRule, ball_columns, ball_sums
from dpmanifolds.sums import total
from dpmanifolds.sums.contribution import DistanceContribution, TangentContribution
from dpmanifolds.sums.counts import DistanceBins
from dpmanifolds.sums.squares import SquaresContribution
from dpmanifolds.sums.total import integers_of, read_records, sum_block
from tests.sums.device_cases import breaches, hard_records, ordinary_records

METRICS = ["affine-invariant", "log-euclidean"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def everywhere(monkeypatch):
    """Whatever is not NumPy's lives on an accelerator, and pieces are short."""
    for module in (total, integers, source, _log_triangle):
        monkeypatch.setattr(module, "on_accelerator", lambda array: not isinstance(array, np.ndarray))
    monkeypatch.setattr(integers, "_kernel_works", lambda *_: False)
    monkeypatch.setattr(integers, "_FORMULA_PIECE", 256)
    monkeypatch.setattr(total, "_DEVICE_TILE", 300)


def pull_at(k, metric, *, substitute=None, exponent=26, offset=None, radius=6.0):
    base = ordinary_records(k, 1, 3.0, seed=5)[0]
    return TangentContribution(SPD(k, metric), base, substitute, radius=radius, offset=offset, exponent=exponent)


def on_library(pull, put):
    return lambda records: integers_of(pull, put(records), fixed_rows=True)


def small_cases(backend):
    """JAX compiles for seconds for every size of matrix; one will do."""
    return [2] if backend.name == "jax" else [1, 2, 3]


def has_no_clear_rule(name):
    """Rounding decides. JAX on a processor takes subnormal numbers for zero, the host does not scale them."""
    return "normal" in name or name in ("singular", "condition 1e16")


@pytest.mark.parametrize("backend", ["array_api_strict", "torch", "jax"], indirect=True)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.usefixtures("everywhere")
def test_integers_are_those_of_the_host_up_to_two_steps(metric, backend):
    for k in small_cases(backend):
        records = ordinary_records(k, 600, 50.0)
        for exponent, dtype in ((20, np.float64), (30, np.float64), (26, np.float32)):
            pull = pull_at(k, metric, exponent=exponent, offset=np.full(k * (k + 1) // 2, 0.1), radius=2.0)
            expected, _ = integers_of(pull, records.astype(dtype))
            found, broken = integers_of(pull, backend.array(records.astype(dtype)))
            assert np.abs(found - expected).max() <= 2
            assert (np.abs(expected).max(axis=0) > 0).all()
            assert not broken.any()


@pytest.mark.parametrize("backend", ["torch", "jax"], indirect=True)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.usefixtures("everywhere")
def test_a_record_has_the_same_integers_in_any_company_place_and_cut(metric, backend):
    for k in small_cases(backend):
        assert breaches(on_library(pull_at(k, metric, exponent=30), backend.array), k, 30) == []


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("backend", ["array_api_strict", "torch", "jax"], indirect=True)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.usefixtures("everywhere")
def test_sums_are_those_of_the_integers_and_rules_those_of_the_host(metric, backend):
    for k in small_cases(backend):
        named = hard_records(k)
        names = [name for name in named if not has_no_clear_rule(name)]
        records = np.concatenate([np.stack([named[name] for name in names]), ordinary_records(k, 700)])
        for substitute in (None, 2 * np.eye(k)):
            pull = pull_at(k, metric, substitute=substitute)
            whole, broken = integers_of(pull, backend.array(records))
            summed = sum_block(pull, backend.array(records))
            assert summed.integers == whole.sum(axis=1).tolist()
            assert summed.rows == len(records)
            assert summed.broken.tolist() == np.bincount(broken, minlength=8).tolist()
            assert broken.tolist() == integers_of(pull, records)[1].tolist()
            at = [row for row, name in enumerate(names) if "not a number" in name or name == "negative"]
            own = np.zeros(pull.dim, int) if substitute is None else integers_of(pull, substitute[None])[0][:, 0]
            assert (whole[:, at] == own[:, None]).all()


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("k", [2, 3])
def test_very_large_and_very_small_records_have_their_logarithms(k):
    usual = hard_records(k)["usual"]
    rule = BallRule(None, np.zeros(k * (k + 1) // 2), radius=2000.0, limit=0.999, exponent=30)
    for factor in (1e300, 1e-300):
        found, broken = ball_columns(np.stack([factor * usual, usual]), rule)
        moved = (found[:, 0] - found[:, 1]) * 2000 / 2**30
        assert np.allclose(moved, np.repeat([np.log(factor), 0.0], [k, k * (k - 1) // 2]), atol=1e-5)
        assert not broken.any()


def test_rows_that_leave_the_ball_become_zero_by_the_exact_check():
    """The check alone: shortening is told to leave rows of length up to 2 alone."""
    rule = BallRule(None, np.zeros(3), radius=1.0, limit=2.0, exponent=30)
    inside, outside = np.diag(np.exp([1.0, 0.0])), np.diag(np.exp([1.0, 2.0**-29]))
    whole, broken = ball_columns(np.stack([inside, outside, np.diag(np.exp([1.0, 1.0]))]), rule)
    assert whole.T.tolist() == [[1 << 30, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert broken.tolist() == [0, 0, 0]
    assert ball_sums(np.stack([inside, outside]), rule)[0].tolist() == [1 << 30, 0, 0]


def test_shortening_keeps_the_check_from_firing():
    for k in (1, 2, 3):
        records = ordinary_records(k, 3000, 1e8)
        for exponent in (4, 20, 30):
            pull = pull_at(k, "log-euclidean", exponent=exponent, radius=0.5)
            rule = BallRule(None, np.zeros(pull.dim), 0.5, _limit(pull), exponent)
            whole, _ = ball_columns(records, rule)
            length = np.sqrt((whole.astype(float) ** 2).sum(axis=0)) / 2**exponent
            assert (length > 1 - 4 * np.sqrt(pull.dim) / 2**exponent).mean() > 0.8
            assert pull.fits(whole).all()


def _limit(pull):
    from dpmanifolds.sums.rounding import shortened_length

    return shortened_length(pull.dim, pull.exponent)


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
@pytest.mark.usefixtures("everywhere")
def test_what_has_no_kernel_takes_the_general_path_where_no_place_can_change(backend):
    records = ordinary_records(2, 40)
    for pull in (pull_at(2, "log-cholesky"), pull_at(2, "log-euclidean", exponent=31)):
        assert pull.sum_on_device(backend.array(records)) is None
        assert sum_block(pull, backend.array(records), fixed_rows=True).rows == 40
    away = DistanceContribution(SPD(2), np.eye(2), radius=5.0)
    found, _ = integers_of(away, backend.array(records), fixed_rows=True)
    assert np.abs(found - integers_of(away, records)[0]).max() <= 2
    empty = sum_block(pull_at(2, "log-euclidean"), backend.array(records[:0]))
    assert (empty.rows, empty.integers) == (0, [0, 0, 0])


FRAME = np.linalg.qr(np.random.default_rng(0).standard_normal((21, 21)))[0]
WIDE = Axes(np.geomspace(0.01, 1.0, 21), FRAME)


@pytest.mark.parametrize("backend", ["torch", "jax"], indirect=True)
@pytest.mark.parametrize(
    "rule",
    [
        pull_at(2, "log-cholesky"),
        pull_at(7, "affine-invariant"),
        TangentContribution(SPD(6), np.eye(6), radius=1.0, exponent=28, axes=WIDE),
        DistanceBins(SPD(6), np.eye(6), edges=np.geomspace(0.1, 9.0, 8), axes=WIDE),
        SquaresContribution(SPD(6), np.eye(6), radius=2.0, basis=FRAME),
    ],
    ids=["log-cholesky", "affine-invariant", "ellipsoid", "sizes", "squares"],
)
@pytest.mark.usefixtures("everywhere")
def test_elsewhere_the_host_does_it_as_other_libraries_round_a_record_by_its_place(rule, backend):
    """A stack of products is one large product there; the last few numbers are worked on by other code."""
    records = ordinary_records(rule.manifold.k, 400)
    whole, broken = integers_of(rule, backend.array(records))
    assert np.array_equal(whole, integers_of(rule, records)[0])
    assert not broken.any()


@pytest.mark.needs("torch")
@pytest.mark.usefixtures("everywhere")
def test_sums_say_whether_places_can_change(monkeypatch):
    """One record more, persons and groups may move every record; the same number of records may not."""
    torch = pytest.importorskip("torch")
    seen = []

    def noted(contribution, block, parts, terms, fixed_rows):
        seen.append(fixed_rows)
        return iter(())

    monkeypatch.setattr(total, "_tiles", noted)
    points = torch.asarray(ordinary_records(4, 12))
    rule = pull_at(4, "log-euclidean")
    usual, guessed = read_records(SPD(4), points), read_records(SPD(4), points, guess=12)
    usual.total(rule)
    usual.total(rule, np.arange(3))
    guessed.total(rule)
    assert seen == [True, False, False]


@pytest.mark.parametrize("backend", ["torch", "jax"], indirect=True)
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.usefixtures("everywhere")
def test_distances_are_counted_on_the_device_and_each_record_by_itself_alone(metric, backend):
    for k in small_cases(backend):
        for substitute in (None, 2 * np.eye(k)):
            base, edges = ordinary_records(k, 1, 3.0, seed=5)[0], 8.0 * 2.0 ** (-np.arange(8)[::-1] / 2)
            rule = DistanceBins(SPD(k, metric), base, substitute, edges=edges)
            named = hard_records(k)
            names = [name for name in named if not has_no_clear_rule(name)]
            records = np.concatenate([np.stack([named[name] for name in names]), ordinary_records(k, 500, 50.0)])
            whole, broken = integers_of(rule, backend.array(records))
            expected, rules = integers_of(rule, records)
            assert broken.tolist() == rules.tolist()
            assert (whole.sum(axis=0) == 1).all()
            assert np.array_equal(whole[:, len(names) :], expected[:, len(names) :])
            order = np.random.default_rng(0).permutation(len(records))
            assert np.array_equal(integers_of(rule, backend.array(records[order]))[0], whole[:, order])


@pytest.mark.parametrize("backend", ["torch", "jax"], indirect=True)
@pytest.mark.parametrize(("k", "metric"), [(4, "log-euclidean"), (7, "affine-invariant")])
@pytest.mark.usefixtures("everywhere")
def test_larger_matrices_by_products_on_the_device_and_hard_ones_by_the_host(k, metric, backend):
    pull = pull_at(k, metric)
    rare = 4 if backend.name == "torch" else 16
    assert breaches(on_library(pull, backend.array), k, 26, every_nth=rare, places=False) == []
    named = hard_records(k)
    # no roots of a condition of 1e300
    names = [name for name in named if not has_no_clear_rule(name) and name != "stretched"]
    records = np.concatenate([np.stack([named[name] for name in names]), ordinary_records(k, 300, 20.0)])
    expected, rules = integers_of(pull, records)
    found, broken = integers_of(pull, backend.array(records), fixed_rows=True)
    # which rule it is, a maximum over numbers that are not numbers may miss
    assert (broken > 0).tolist() == (rules > 0).tolist()
    assert np.abs(found - expected)[:, len(names) :].max() <= 2
    assert (np.abs(expected).max(axis=0) > 0)[len(names) :].all()


@pytest.mark.needs("torch")
@pytest.mark.parametrize("k", [8, 9, 33])
@pytest.mark.usefixtures("everywhere")
def test_a_record_that_becomes_hard_moves_no_other_hard_record(k):
    """Where hard records are gathered, one more of them moves all others by a place; odd sizes are aligned by place."""
    torch = pytest.importorskip("torch")
    pull = TangentContribution(SPD(k), np.eye(k), radius=6.0, exponent=26)
    others, hard = ordinary_records(k, 30, 1e12), ordinary_records(k, 1, 1e4, seed=1)
    found = [
        integers_of(pull, torch.asarray(np.concatenate([first, others])), fixed_rows=True)[0][:, 1:]
        for first in (np.eye(k)[None], hard)
    ]
    assert np.array_equal(*found)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("k", [4, 6, 30])
def test_logarithms_on_a_device_come_from_products_or_the_host(k):
    torch = pytest.importorskip("torch")
    from dpmanifolds.manifolds._device_logs import device_logs
    from dpmanifolds.manifolds._logarithms import matrix_logs

    records = np.concatenate([ordinary_records(k, 50, condition) for condition in (2.0, 30.0, 1e5)])
    logs, expected = device_logs(torch.asarray(records)).numpy(), matrix_logs(records)[0]
    assert np.allclose(logs, expected, atol=1e-10)
    assert np.isnan(device_logs(torch.asarray(-records[:3])).numpy()).all()


@pytest.mark.needs("jax")
@pytest.mark.parametrize(("k", "whiten"), [(1, False), (2, True), (3, True)])
def test_the_pallas_kernels_compute_the_formulas(k, whiten):
    """Interpreted here; compiled on an accelerator."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    from dpmanifolds.statistics.kernels.pallas import pallas_integers

    named = hard_records(k)
    clear = [record for name, record in named.items() if not has_no_clear_rule(name) and name != "condition 1e12"]
    records = np.concatenate([np.stack(clear), ordinary_records(k, 400)])
    matrix = np.linalg.inv(np.linalg.cholesky(ordinary_records(k, 1, 3.0, seed=5)[0])) if whiten else None
    rule = BallRule(matrix, np.full(k * (k + 1) // 2, 0.1), radius=5.0, limit=0.999, exponent=28)
    whole, broken = ball_columns(records, rule)
    count = len(records)
    padded = np.concatenate([records, np.full((1100 - count, k, k), np.nan)])
    arguments = (padded, rule.numbers(k).flat, np.asarray(count, np.int32))
    table = np.asarray(pallas_integers(k, whiten=whiten, each=True, interpret=True)(*arguments))[:, :count]
    assert np.abs(table[:-1] - whole).max() <= 2
    assert table[-1].tolist() == broken.tolist()
    totals = np.asarray(pallas_integers(k, whiten=whiten, each=False, interpret=True)(*arguments))
    assert np.abs(totals[:-3] - whole.sum(axis=1)).max() <= 2 * count
    assert totals[-3:].tolist() == np.bincount(broken, minlength=4)[1:].tolist()


@pytest.mark.needs("jax")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_pallas_kernels_have_a_triton_form(k, each, dtype):
    """Everything they use can be lowered for an accelerator."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    from dpmanifolds.statistics.kernels.pallas import pallas_integers

    numbers = k * k + k * (k + 1) // 2 + 3
    shapes = [((1100, k, k), dtype), ((numbers,), np.float64), ((), np.int32)]
    traced = pallas_integers(k, whiten=True, each=each).trace(*(jax.ShapeDtypeStruct(*shape) for shape in shapes))
    assert "triton" in traced.lower(lowering_platforms=("cuda",)).as_text()


INTERPRETED = """
import sys
import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle
from dpmanifolds import SPD
from dpmanifolds.manifolds import _device_logs, _triton_products
from dpmanifolds.statistics.kernels import (
    device, triton, triton_gentle, triton_integers, triton_large, triton_matrices, triton_single
)
from dpmanifolds.statistics.kernels.integers import BallRule, _by_triton, ball_columns
from dpmanifolds.sums.contribution import TangentContribution
from dpmanifolds.sums.rounding import shortened_length
from dpmanifolds.sums.total import integers_of
from tests.sums.device_cases import breaches, hard_records, ordinary_records

np.seterr(all="ignore")

def lifted(function):
    return lambda x: tl.core.tensor(TensorHandle(function(x.handle.data), x.handle.dtype), x.type)

class Functions:
    log, log1p, sqrt, floor, cos, sin = map(lifted, (np.log, np.log1p, np.sqrt, np.floor, np.cos, np.sin))
    fast_cosf, fast_sinf = cos, sin
    rsqrt = lifted(lambda x: 1 / np.sqrt(x))

    @staticmethod
    def fast_dividef(a, b):
        return a / b

    @staticmethod
    def atan2(y, x):
        return tl.core.tensor(TensorHandle(np.arctan2(y.handle.data, x.handle.data), y.handle.dtype), y.type)

usual = interpreter._patch_lang_tensor

def patch(tensor, scope):
    # NumPy makes numbers of arrays of one entry no longer
    usual(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

interpreter._patch_lang_tensor = patch
for module in (triton, triton_gentle, triton_integers, triton_large, triton_matrices, triton_single):
    module.libdevice = Functions
for k in (1, 2, 3):
    records = np.concatenate([np.stack(list(hard_records(k).values())), ordinary_records(k, 300)])
    matrix = np.linalg.inv(np.linalg.cholesky(ordinary_records(k, 1, 3.0, seed=5)[0]))
    for whitener, dtype in ((None, np.float64), (matrix, np.float64), (matrix, np.float32)):
        rule = BallRule(whitener, np.full(k * (k + 1) // 2, 0.1), 5.0, 0.999, 28)
        given = records.astype(dtype)
        whole, broken = ball_columns(given, rule)
        table = _by_triton(torch.asarray(given), rule, True).numpy()
        # 3×3 matrices of single precision are worked on in it
        single = k == 3 and dtype == np.float32
        assert np.abs(table[:-1] - whole).max() <= (2e-5 * 2**28 / 5 if single else 2)
        assert table[-1].tolist() == broken.tolist()
        totals = _by_triton(torch.asarray(given), rule, False).numpy()
        assert totals[:-3].tolist() == table[:-1].sum(axis=1).tolist()
        assert totals[-3:].tolist() == np.bincount(broken, minlength=4)[1:].tolist()
rule = BallRule(matrix, np.zeros(6), 5.0, 0.999, 28)
def integers(records):
    table = _by_triton(torch.asarray(records), rule, True).numpy()
    return table[:-1], table[-1]
assert breaches(integers, 3, 28, every_nth=9) == []
def single_integers(records):
    table = _by_triton(torch.asarray(records.astype(np.float32)), rule, True).numpy()
    return table[:-1], table[-1]
assert breaches(single_integers, 3, 28, every_nth=40) == []
records, weights = ordinary_records(3, 300), np.full(300, 1 / 300)
given = device._Given(matrix, np.full(6, 0.1), 2.0, 1 / 300)
for hessian in (False, True):
    call = device._Call(3, 2.0**-52, True, True, hessian)
    found = device._by_triton(call, torch.asarray(records), torch.asarray(weights), given)
    expected = device._by_formulas(call, records, weights, given)
    assert all(np.allclose(*pair, rtol=1e-12, atol=1e-12) for pair in zip(found, expected))
_device_logs._working_kernels = lambda library: _triton_products
_device_logs.on_accelerator = lambda array: True
_triton_products.LARGEST_SWEPT = 3
for k in (4, 7):
    base, d = ordinary_records(k, 1, 3.0, seed=5)[0], k * (k + 1) // 2
    pull = TangentContribution(SPD(k), base, radius=6.0, exponent=26, offset=np.full(d, 0.1))
    hard = np.stack(list(hard_records(k).values()))[::4]
    records = np.concatenate([hard, ordinary_records(k, 5, 20.0)])
    whole, broken = integers_of(pull, records)
    whitener = np.linalg.inv(np.linalg.cholesky(base))
    rule = BallRule(whitener, np.full(d, 0.1), 6.0, shortened_length(d, 26), 26)
    columns, codes, seen = triton_large.large_integers(torch.asarray(records), rule, len(records), each=True)
    assert np.abs(columns.numpy() - whole)[:, -5:].max() <= 2
    assert (codes.numpy() == np.where(broken == 3, 0, broken)).all()
    assert not seen.numpy()[broken == 3].any()
    total, _, _ = triton_large.large_integers(torch.asarray(records), rule, len(records) - 2, each=False)
    assert total.tolist() == columns.numpy()[:, :-2].sum(axis=1).tolist()
    # a file of matrices k×k×n: their numbers do not lie one after the other
    turned = torch.as_tensor(np.ascontiguousarray(np.moveaxis(records[-5:], 0, -1))).permute(2, 0, 1)
    for size in (3, 32):
        _triton_products.LARGEST_SWEPT = size
        for function in (_device_logs._inverses, _device_logs.device_logs):
            assert torch.equal(function(turned), function(turned.contiguous()))
print("kept")
"""


@pytest.mark.needs("torch")
def test_the_triton_kernels_compute_the_formulas():
    """Interpreted, in a process of its own: Triton asks at import whether it is to be."""
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": paths}
    command = [sys.executable, "-c", INTERPRETED]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "kept", done.stderr[-2000:]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 2, 3, 6])
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_an_accelerator_keeps_the_contract(library, k, metric):
    """Where there is one."""
    module = pytest.importorskip(library)
    if library == "torch":
        if not module.cuda.is_available():
            pytest.skip("no accelerator")

        def put(records):
            return module.asarray(records, device="cuda")
    else:
        if module.default_backend() == "cpu":
            pytest.skip("no accelerator")
        module.config.update("jax_enable_x64", True)
        put = module.numpy.asarray
    pull = pull_at(k, metric, exponent=28)
    assert breaches(on_library(pull, put), k, 28) == []


@pytest.mark.needs("jax")
def test_closed_forms_are_the_logarithms_of_gentle_matrices():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    from dpmanifolds.statistics.kernels.gentle import gentle_logs

    rng = np.random.default_rng(0)
    for condition, error in ((1.0, 1e-14), (1 + 1e-12, 1e-14), (1.001, 1e-14), (10.0, 1e-14), (1e5, 1e-9)):
        frames = np.linalg.qr(rng.standard_normal((200, 3, 3)))[0]
        middle = rng.choice([1.0, condition, condition**0.5, 1 + 1e-9], 200)
        values = np.stack([np.ones(200), middle, np.full(200, condition)], axis=1)
        x = (frames * values[:, None, :]) @ frames.swapaxes(1, 2)
        x = (x + x.swapaxes(1, 2)) / 2
        values, frames = np.linalg.eigh(x)
        logs = (frames * np.log(values)[:, None, :]) @ frames.swapaxes(1, 2)
        found, gentle = gentle_logs({(i, j): jax.numpy.asarray(x[:, i, j]) for i in range(3) for j in range(i, 3)})
        expected = [logs[:, i, i] for i in range(3)] + [2**0.5 * logs[:, i, j] for i, j in ((0, 1), (0, 2), (1, 2))]
        assert gentle.all()
        assert np.abs(np.stack(found) - expected).max() < error
