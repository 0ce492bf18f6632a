"""Rounded continuous noise: the integers are those of real random numbers, and their law is exact."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmanifolds.errors import ArgumentError
from dpmanifolds.noise import RoundedGaussian, RoundedLaplace, exact
from dpmanifolds.noise.enclosures import enclosed_in_disc, enclosed_sizes, minus_log
from dpmanifolds.noise.exact import BitStream, NormalPair, draw_rounded
from tests.noise.exact_laws import CERTAIN, FALSE_ALARM, fit, gaussian_cells, grid, laplace_marginal, laplace_plane

COUNT = 6_000
MANY_BITS = 1000


class Tapes(BitStream):
    """Endless bit strings, one for the signs and one per uniform number, that do not depend on how they are read."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.made = self.asked = 0

    def _bits(self, name: int, start: int, stop: int) -> int:
        size = -(-stop // 8)
        digest = hashlib.shake_128(f"{self.seed}/{name}".encode()).digest(size)
        return (int.from_bytes(digest) >> (8 * size - stop)) & ((1 << (stop - start)) - 1)

    def take(self, bits):
        return self._bits(-1, 0, bits)

    def tape(self):
        name, read = self.made, 0
        self.made += 1

        def next_bits(bits):
            nonlocal read
            read, self.asked = read + bits, self.asked + 1
            return self._bits(name, read - bits, read)

        return next_bits

    def real(self):
        return mpmath.mpf(self.tape()(MANY_BITS)) / mpmath.mpf(2) ** MANY_BITS


def oracle(dim, scale, tapes, *, radial):
    """The formulas of the sampler in 1000-bit floating point: polar method, |h|² = −2 Σ ln U (+ one square)."""
    with mpmath.workprec(MANY_BITS + 50):

        def pair():
            while True:
                u, v = tapes.real(), tapes.real()
                s = u * u + v * v
                if s < 1:
                    return u * mpmath.sqrt(-2 * mpmath.log(s) / s), v * mpmath.sqrt(-2 * mpmath.log(s) / s)

        signs = f"{tapes.take(dim):0{dim}b}"
        sizes = [size for _ in range((dim + 1) // 2) for size in pair()][:dim]
        factor = mpmath.mpf(scale.numerator) / scale.denominator
        if radial:
            square = -2 * sum(mpmath.log(tapes.real()) for _ in range((dim + 1) // 2))
            factor *= mpmath.sqrt(square + (pair()[0] ** 2 if dim % 2 == 0 else 0))
        rounded = [int(mpmath.floor(factor * size + mpmath.mpf(1) / 2)) for size in sizes]
        return [-size if sign == "1" else size for sign, size in zip(signs, rounded, strict=True)]


@pytest.mark.grid(at_most=3)
@pytest.mark.parametrize("radial", [False, True])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1.3), Fraction(2**30), Fraction(2**52)])
def test_the_integers_do_not_depend_on_the_precision_it_starts_with(scale, radial):
    for seed, dim in enumerate([1, 2, 3, 6, 9, 1, 2, 3, 6, 9]):
        expected = oracle(dim, scale, Tapes(seed), radial=radial)
        for bits in (1, 2, 5, 16, 61, 128, 400):
            assert draw_rounded(dim, scale, Tapes(seed), radial=radial, bits=bits) == expected


@pytest.mark.parametrize("radial", [False, True])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2**22), Fraction(3 * 2**44, 7), Fraction(2**47)])
def test_floating_point_gives_the_integers_of_integer_arithmetic(monkeypatch, scale, radial):
    """The same stream of bits, once all pairs by integers alone; at 2^47 floats leave most of them open."""
    for dim, halved in ((300, 0), (301, 100)):
        many = draw_rounded(dim, scale, BitStream(np.random.default_rng(dim)), radial=radial, halved=halved)
        with monkeypatch.context() as alone:
            alone.setattr(exact, "_MANY", math.inf)
            one = draw_rounded(dim, scale, BitStream(np.random.default_rng(dim)), radial=radial, halved=halved)
        assert many == one


def test_floats_claim_no_integer_that_is_not_proven():
    """Sizes within their doubt of a half-integer, and points next to the circle and the axes, are left to integers."""
    rng = np.random.default_rng(1)
    u, v = (rng.integers(1, 2**52, 4000) * 2.0**-53 for _ in range(2))
    u[:3], v[:3] = [0.0, 2.0**-53, 1 - 2.0**-53], [0.5, 0.5, 2.0**-53]
    for exponent in (0, 20, 40, 46):
        scale = np.full(u.size, 2.0**exponent)
        sizes, proven = enclosed_sizes(u, v, (scale, scale), 0.0)
        assert not proven[0, :2].any() or exponent < 10
        with mpmath.workprec(200):
            for row in [*range(3), *rng.integers(3, 4000, 100).tolist()]:
                ends = []
                for step in (0, 1):  # the size grows in u and falls in s, so the box has its extremes at two corners
                    a = mpmath.mpf(u[row]) + mpmath.mpf(step) / 2**53
                    b = mpmath.mpf(v[row]) + mpmath.mpf(1 - step) / 2**53
                    s = a * a + b * b
                    if 0 < s < 1:
                        ends.append(a * mpmath.sqrt(-2 * mpmath.log(s) / s) * 2**exponent)
                if proven[0, row]:
                    assert all(abs(end - int(sizes[0, row])) <= 0.5 for end in ends)
        assert proven[:, 3:].mean() > 0.9 if exponent < 46 else proven[:, 3:].mean() < 0.9


@pytest.mark.parametrize("radial", [False, True])
def test_the_scale_that_floats_get_is_as_exact_as_they_are_told(monkeypatch, radial):
    """Lemma 3 takes the scale as known up to a share: the root of c must be, however small or large c is."""
    scales = [Fraction(1, 3**power) for power in (1, 4, 7, 20, 60)] + [Fraction(2**40, 3), Fraction(2**52)]
    told = []

    def noted(u, v, scale, unsure):
        told.append((scale[0][0], unsure))
        return enclosed_sizes(u, v, scale, unsure)

    monkeypatch.setattr(exact, "enclosed_sizes", noted)
    for scale in scales:
        pairs = exact._Pairs(64, BitStream(np.random.default_rng(0)))
        low, unit = scale.numerator**2, scale.denominator**2
        if radial:
            low, unit = low * (129 << 160), unit << 160
        pairs.rounded(low, low, unit, 128)
        root, unsure = told.pop()
        with mpmath.workprec(200):
            assert abs(root / mpmath.sqrt(mpmath.mpf(low) / unit) - 1) <= unsure


class Fixed:
    """A generator that gives these bytes first."""

    def __init__(self, first):
        self.first, self.rest = first, np.random.default_rng(0)

    def bytes(self, count):
        found, self.first = self.first[:count], self.first[count:]
        return found + self.rest.bytes(count - len(found))


class _Given(BitStream):
    """These pairs of 128 bits, then fair bits."""

    def __init__(self, pairs):
        super().__init__(np.random.default_rng(0))
        self.pairs = pairs

    def numbers(self, count):
        taken, self.pairs = self.pairs[: count // 2], self.pairs[count // 2 :]
        return np.array([[part >> 64, part % 2**64] for pair in taken for part in pair], dtype=np.uint64)


def test_a_point_just_outside_of_the_disc_takes_no_part():
    rng = np.random.default_rng(1)
    inside = [tuple(int.from_bytes(rng.bytes(16)) >> 1 for _ in range(2)) for _ in range(64)]
    first = 6 * 2**128 // 10
    outside = (first, math.isqrt(2**256 - first**2) + 5)
    pairs = exact._Pairs(64, _Given([inside[0], outside, *inside[1:]]))
    # so much noise that floats decide nothing
    _, left = pairs.rounded(2**104, 2**104, 1, 128)
    assert [(left[row]._first.value, left[row]._second.value) for row in range(64)] == inside


def test_a_point_next_to_the_circle_is_decided_by_integers(monkeypatch):
    """Floats cannot tell: the first point is outside by 2^-120, the second inside by 2^-57 and makes the first pair."""
    near = [2**128 - 1, 2**68, 2**128 - 2**70, 2**68]
    first = bytes(16) + b"".join(value.to_bytes(16) for value in near)
    assert enclosed_in_disc(np.array([1 - 2.0**-53]), np.array([2.0**-60]))[1].tolist() == [False]
    many = draw_rounded(128, Fraction(2**40), BitStream(Fixed(first)), radial=False)
    monkeypatch.setattr(exact, "_MANY", math.inf)
    assert many == draw_rounded(128, Fraction(2**40), BitStream(Fixed(first)), radial=False)
    assert many[0] == math.isqrt(2**80 * 2 // 2**57)  # 2^40·√(2·2^-57)


def test_few_bits_are_refined_and_128_bits_are_not():
    few, many = Tapes(5), Tapes(5)
    assert draw_rounded(8, Fraction(2**30), few, radial=True, bits=4) == draw_rounded(
        8, Fraction(2**30), many, radial=True
    )
    assert few.made == many.made == many.asked
    assert few.asked > 3 * few.made


def test_undecided_coordinates_are_as_rare_as_proven():
    """4,000 pairs of 16 bits at scale 1/4 against the bound of docs/proofs/numerics.md, false alarm 1e−7."""
    bits, scale, count = 16, Fraction(1, 4), 4000
    source = BitStream(np.random.default_rng(0))
    pairs = (NormalPair(source, bits) for _ in range(count))
    open_pairs = sum(pair.rounded(bits, bits + 32, 1, 1, (scale.denominator**2,) * 2) is None for pair in pairs)
    gamma = (5.2 * math.sqrt(bits) + 8 + bits**2 / 2**26) * 2 ** (-3 * bits / 4)
    assert scale * gamma <= 1 / 4
    assert stats.binom.sf(open_pairs, count, 2 * (2 * 2 ** (-bits / 2) + 8 * scale * gamma)) > FALSE_ALARM


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 500), st.data(), st.sampled_from([1, 3, 17, 64, 160, 300]))
def test_a_logarithm_lies_between_its_two_integers(shift, data, precision):
    value = data.draw(st.integers(1, 2 ** data.draw(st.integers(0, shift))))
    low, high = minus_log(value, shift, precision)
    with mpmath.workprec(1200):
        true = -mpmath.log(mpmath.mpf(value) / mpmath.mpf(2) ** shift) * mpmath.mpf(2) ** precision
        assert low <= true <= high
    assert high - low <= (shift + 2) * (2 * precision + 12)


def noise_of(kind, dim, scale, rng=None):
    return kind(dim, scale).release(np.zeros(dim, dtype=np.int64), rng)


def vectors(kind, dim, scale, seed, count=COUNT):
    generator = np.random.default_rng(seed)
    return np.stack([noise_of(kind, dim, scale, generator) for _ in range(count)])


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("dim", "scale"), [(1, 1.3), (1, 3.7), (2, 1.3), (3, 1.3)])
def test_rounded_gaussian_has_the_gaussian_mass_of_every_cell(dim, scale):
    """6,000 vectors, chi-square on joint cells, false alarm 1e−7; a scale off by 30 % has p below 1e−12."""
    draws, cells = vectors(RoundedGaussian, dim, scale, 10 + dim), grid(int(6 * scale) + 2, dim)
    assert fit(draws, cells, gaussian_cells(cells, scale)) > FALSE_ALARM
    for wrong in (0.7, 1.3):
        assert fit(draws, cells, gaussian_cells(cells, wrong * scale)) < CERTAIN


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize(("dim", "scale"), [(1, 1.3), (1, 3.7), (3, 1.3)])
def test_a_coordinate_of_rounded_laplace_has_the_marginal_mass_of_every_cell(dim, scale):
    """6,000 vectors, chi-square of the last coordinate, false alarm 1e−7."""
    draws, cells = vectors(RoundedLaplace, dim, scale, 20 + dim)[:, -1:], grid(int(12 * scale), 1)
    assert fit(draws, cells, laplace_marginal(cells, scale, dim)) > FALSE_ALARM
    for wrong in (0.7, 1.3):
        assert fit(draws, cells, laplace_marginal(cells, wrong * scale, dim)) < CERTAIN


def test_rounded_laplace_in_the_plane_has_the_mass_of_every_square():
    """6,000 vectors, chi-square on joint cells, false alarm 1e−7."""
    draws, cells = vectors(RoundedLaplace, 2, 1.3, 30), grid(9, 2)
    assert fit(draws, cells, laplace_plane(cells, 1.3)) > FALSE_ALARM
    for wrong in (0.7, 1.3):
        assert fit(draws, cells, laplace_plane(cells, wrong * 1.3)) < CERTAIN


@pytest.mark.grid(at_most=1)
@pytest.mark.parametrize("dim", [1, 2, 7, 40])
@pytest.mark.parametrize("radial", [False, True])
def test_the_radius_on_a_fine_lattice_is_that_of_the_continuous_law(dim, radial):
    """1,000 vectors at scale 2^30, Kolmogorov–Smirnov against chi and Gamma, false alarm 1e−7."""
    law = stats.gamma(dim) if radial else stats.chi(dim)
    draws = vectors(RoundedLaplace if radial else RoundedGaussian, dim, 2**30, dim, 1000)
    radii = np.linalg.norm(draws / 2**30, axis=1)
    assert stats.kstest(radii, law.cdf).pvalue > FALSE_ALARM
    for wrong in (0.7, 1.3):
        assert stats.kstest(wrong * radii, law.cdf).pvalue < FALSE_ALARM


@pytest.mark.parametrize("kind", [RoundedGaussian, RoundedLaplace])
def test_the_lowest_bits_of_a_release_are_uniform_whatever_the_value(kind):
    """20,000 coordinates at scale 2^30 modulo 32, chi-square, false alarm 1e−7: neighbours share every output."""
    noise = noise_of(kind, 20_000, 2**30, 3)
    for value in (0, 1):
        counts = np.bincount((value + noise) % 32, minlength=32)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.parametrize("kind", [RoundedGaussian, RoundedLaplace])
def test_a_seed_repeats_the_draw_and_no_seed_does_not(kind):
    assert np.array_equal(noise_of(kind, 50, 2**20, 7), noise_of(kind, 50, 2**20, 7))
    assert not np.array_equal(noise_of(kind, 50, 2**20, 7), noise_of(kind, 50, 2**20, 8))
    assert not np.array_equal(noise_of(kind, 50, 2**20), noise_of(kind, 50, 2**20))
    assert noise_of(kind, 5, 2**20).dtype == np.int64


@pytest.mark.parametrize("kind", [RoundedGaussian, RoundedLaplace])
def test_release_adds_the_noise_and_stays_within_int64(kind):
    values = np.array([5, -7, 2**40])
    noise = kind(3, 2**20).release(np.zeros(3, dtype=int), 1)
    assert np.array_equal(kind(3, 2**20).release(values, 1), values + noise)
    edges = kind(200, 2.0**40).release(np.full(200, 2**63 - 1), 1)
    assert np.count_nonzero(edges == 2**63 - 1) > 50
    assert np.all(edges > 2**62)


def test_scales_are_taken_exactly_whatever_their_type():
    expected = noise_of(RoundedGaussian, 6, 2**40, 1)
    for scale in (2.0**40, np.float64(2**40), np.int64(2**40), Fraction(2**40)):
        assert np.array_equal(noise_of(RoundedGaussian, 6, scale, 1), expected)
    expected = noise_of(RoundedLaplace, 200, 2**40, 1)
    assert np.array_equal(noise_of(RoundedLaplace, np.int64(200), np.int64(2**40), 1), expected)


@given(st.floats(0, 1e12), st.floats(1e-12, 2.0**40))
def test_the_promise_is_the_ratio_rounded_up(steps, scale):
    ratio = Fraction(steps) / Fraction(scale)
    for promise in (RoundedGaussian(3, scale).mu(steps), RoundedLaplace(3, scale).epsilon(steps)):
        assert ratio <= promise
        assert promise <= ratio * (1 + Fraction(1, 2**51)) + Fraction(1, 2**1000)


@pytest.mark.parametrize("kind", [RoundedGaussian, RoundedLaplace])
@pytest.mark.parametrize("scale", [0, -1.0, float("nan"), float("inf"), 2.0**53, None, "one"])
def test_a_scale_that_is_not_positive_or_too_large_is_refused(kind, scale):
    with pytest.raises(ArgumentError, match="sigma must be"):
        noise_of(kind, 3, scale, 1)


@pytest.mark.parametrize("kind", [RoundedGaussian, RoundedLaplace])
@pytest.mark.parametrize("dim", [0, -1, 2.0, None])
def test_a_dimension_below_one_is_refused(kind, dim):
    with pytest.raises(ArgumentError, match="dim must be"):
        noise_of(kind, dim, 1.0, 1)


def test_laplace_noise_of_many_dimensions_needs_a_smaller_scale():
    with pytest.raises(ArgumentError, match="coarser lattice"):
        RoundedLaplace(100, 2.0**50)
    RoundedLaplace(100, 2.0**48)


@pytest.mark.parametrize("values", [[1.0, 2.0], [1, 2, 3], [2**63, 0], [[1, 2]], ["1", "2"]])
def test_values_that_are_not_int64_of_the_right_length_are_refused(values):
    with pytest.raises(ArgumentError, match="values must"):
        RoundedGaussian(2, 1.0).release(values)


@pytest.mark.parametrize("steps", [-1.0, float("inf"), float("nan")])
def test_a_sensitivity_that_is_negative_or_infinite_is_refused(steps):
    with pytest.raises(ArgumentError, match="l2_steps must"):
        RoundedGaussian(2, 1.0).mu(steps)


@pytest.mark.long
@pytest.mark.parametrize("kind", [RoundedGaussian, RoundedLaplace])
def test_rounded_noise_in_the_plane_over_many_draws(kind):
    """200,000 vectors of scale 2.2, chi-square on joint cells, false alarm 1e−7; scales off by 5 % are rejected."""
    masses = gaussian_cells if kind is RoundedGaussian else laplace_plane
    draws, cells = vectors(kind, 2, 2.2, 40, 200_000), grid(20, 2)
    assert fit(draws, cells, masses(cells, 2.2)) > FALSE_ALARM
    for wrong in (0.95, 1.05):
        assert fit(draws, cells, masses(cells, wrong * 2.2)) < CERTAIN
