"""True profiles and divergences by definition, in mpmath's working precision; nothing is shared with src."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import mpmath as mp

__all__ = [
    "composed_loss_delta",
    "discrete_gaussian_delta",
    "discrete_gaussian_losses",
    "discrete_laplace_delta",
    "discrete_laplace_losses",
    "gaussian_delta",
    "l2_laplace_delta",
    "laplace_delta",
    "laplace_twice_delta",
    "probit",
    "randomised_response_delta",
    "rare_events_delta",
    "renyi_of_losses",
    "riemannian_delta",
    "sampled_gaussian_delta",
    "sampled_gaussian_renyi",
    "sampled_gaussian_twice_delta",
    "sampled_laplace_delta",
]

Losses = dict[int, mp.mpf]


def probit(probability: mp.mpf) -> mp.mpf:
    """Φ⁻¹, however small the probability."""
    with mp.extradps(20 - int(mp.log10(probability))):
        return mp.sqrt(2) * mp.erfinv(2 * probability - 1)


def gaussian_delta(mu: float, epsilon: float) -> mp.mpf:
    """Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2), with as many digits more as the difference loses."""
    with mp.extradps(40 + int(mp.mpf(epsilon) ** 2 / mp.mpf(mu) ** 2 / 4) + int(abs(mp.log10(mu)))):
        mean, level = mp.mpf(mu), mp.mpf(epsilon)
        return mp.ncdf(-level / mean + mean / 2) - mp.exp(level) * mp.ncdf(-level / mean - mean / 2)


def randomised_response_delta(pure: float, epsilon: float) -> mp.mpf:
    """(e^a − e^ε)₊/(1 + e^a)."""
    return max(mp.exp(mp.mpf(pure)) - mp.exp(mp.mpf(epsilon)), mp.mpf(0)) / (1 + mp.exp(mp.mpf(pure)))


def laplace_delta(shift: float | mp.mpf, epsilon: float | mp.mpf) -> mp.mpf:
    """∫(p − e^ε q)₊ for Laplace laws at distance a, at any real ε."""
    a, e = mp.mpf(shift), mp.mpf(epsilon)
    if e >= a:
        return mp.mpf(0)
    return 1 - mp.exp((e - a) / 2) if e >= -a else 1 - mp.exp(e)


def laplace_twice_delta(shift: float, epsilon: float) -> mp.mpf:
    """The same for two releases: the second one's profile averaged over the loss of the first."""
    a, e = mp.mpf(shift), mp.mpf(epsilon)
    atoms = laplace_delta(a, e - a) / 2 + mp.exp(-a) * laplace_delta(a, e + a) / 2
    cuts = sorted({-a, a, *(x for x in (e - a, e + a) if -a < x < a)})
    return atoms + mp.quad(lambda loss: mp.exp((loss - a) / 2) / 4 * laplace_delta(a, e - loss), cuts)


def l2_laplace_delta(dim: int, shift: float, epsilon: float) -> mp.mpf:
    """MATH.md B6, its inner integral by Bessel functions, the outer by quadrature in w = sin φ."""
    a, e, z, order = mp.mpf(shift), mp.mpf(epsilon), mp.mpf(shift) / 2, mp.mpf(dim - 2) / 2
    near, far = (
        mp.gamma(nu + mp.mpf(1) / 2) / mp.sqrt(mp.pi) * (2 / z) ** nu * mp.besselk(nu, z) for nu in (order, order + 1)
    )
    c = z**dim * mp.gamma(mp.mpf(dim) / 2) / (mp.sqrt(mp.pi) * mp.gamma(dim) * mp.gamma(mp.mpf(dim - 1) / 2))

    def density(phi: mp.mpf) -> mp.mpf:
        loss, across = a * mp.sin(phi), mp.cos(phi)
        return across ** (dim - 2) * (far + near * across**2) * mp.exp(loss / 2) * (1 - mp.exp(e - loss))

    low = mp.asin(e / a)
    return c * mp.quad(density, mp.linspace(low, mp.pi / 2, 5))


def discrete_gaussian_losses(sigma: float, shift: int) -> tuple[Losses, mp.mpf]:
    """P(x) ∝ e^{−x²/2σ²} at the loss (k − 2x)·unit, unit = k/2σ²: masses by k − 2x, and the unit."""
    variance, reach = mp.mpf(sigma) ** 2, int(36 * sigma) + shift + 2
    weights = {shift - 2 * x: mp.exp(-mp.mpf(x * x) / (2 * variance)) for x in range(-reach, reach + 1)}
    total = mp.fsum(weights.values()) * (1 + mp.mpf(10) ** -200)
    return {at: weight / total for at, weight in weights.items()}, shift / (2 * variance)


def discrete_laplace_losses(scale: float, shift: int) -> tuple[Losses, mp.mpf]:
    """P(x) ∝ e^{−|x|/s} at the loss (|x − k| − |x|)/s."""
    fall = mp.exp(-1 / mp.mpf(scale))
    masses = {shift - 2 * x: (1 - fall) / (1 + fall) * fall**x for x in range(1, shift)}
    return masses | {shift: 1 / (1 + fall), -shift: fall**shift / (1 + fall)}, 1 / mp.mpf(scale)


def composed_loss_delta(parts: Sequence[Losses], unit: mp.mpf, epsilon: float) -> mp.mpf:
    """δ of several releases whose losses lie on one grid."""
    total: Losses = {0: mp.mpf(1)}
    for part in parts:
        following: Losses = {}
        for (at, mass), (more, other) in itertools.product(total.items(), part.items()):
            following[at + more] = following.get(at + more, mp.mpf(0)) + mass * other
        total = following
    return mp.fsum(m * -mp.expm1(epsilon - at * unit) for at, m in total.items() if at * unit > epsilon)


def renyi_of_losses(losses: Losses, unit: mp.mpf, alpha: float) -> mp.mpf:
    """log Σ P·e^{(α−1)·loss}, over α − 1."""
    power = mp.mpf(alpha) - 1
    return mp.log(mp.fsum(mass * mp.exp(power * at * unit) for at, mass in losses.items())) / power


def discrete_gaussian_delta(sigma: float, shift: int, epsilon: float) -> mp.mpf:
    """Σ(P(x) − e^ε P(x − k))₊ for P(x) ∝ e^{−x²/2σ²} on the integers."""
    losses, unit = discrete_gaussian_losses(sigma, shift)
    return composed_loss_delta([losses], unit, epsilon)


def discrete_laplace_delta(scale: float, shift: int, epsilon: float) -> mp.mpf:
    """Σ(P(x) − e^ε P(x − k))₊ for P(x) ∝ e^{−|x|/s} on the integers."""
    losses, unit = discrete_laplace_losses(scale, shift)
    return composed_loss_delta([losses], unit, epsilon)


class _Mixtures:
    """(1 − q)N(0) + qN(x) against another such law, unit clip norm, noise σ."""

    def __init__(self, sampling: str, rate: float, noise: float) -> None:
        self.q, self.s = mp.mpf(rate), mp.mpf(noise)
        self.away = {"poisson": (1, -1), "fixed-size": (2, 0), "poisson-add-remove": (1, 0)}[sampling]

    def ratio(self, mean: int, x: mp.mpf) -> mp.mpf:
        """The density over that of N(0)."""
        return 1 + self.q * mp.expm1((mean * x - mp.mpf(mean * mean) / 2) / self.s**2)

    def loss(self, x: mp.mpf) -> mp.mpf:
        return mp.log(self.ratio(self.away[0], x) / self.ratio(self.away[1], x))

    def above(self, mean: int, x: mp.mpf) -> mp.mpf:
        return (1 - self.q) * mp.ncdf(-x / self.s) + self.q * mp.ncdf((mean - x) / self.s)

    def threshold(self, epsilon: mp.mpf) -> mp.mpf:
        """Where the loss, which grows with x, is ε; ±∞ where it never is."""
        grow, square = mp.exp(epsilon), self.s**2
        if self.away[1] == 0:
            over = (grow - 1) / self.q + 1
            return -mp.inf if over <= 0 else square * mp.log(over) / self.away[0] + mp.mpf(self.away[0]) / 2
        r = self.q / (1 - self.q) * mp.exp(-1 / (2 * square))
        half = (grow - 1) / (2 * r)
        root = mp.sqrt(half * half + grow)
        return square * mp.log(half + root if half > 0 else grow / (root - half))

    def delta(self, epsilon: mp.mpf) -> mp.mpf:
        """∫(p − e^ε q)₊ at any real ε."""
        x = self.threshold(epsilon)
        if x == -mp.inf:
            return 1 - mp.exp(epsilon)
        return self.above(self.away[0], x) - mp.exp(epsilon) * self.above(self.away[1], x)

    def reverse_delta(self, epsilon: mp.mpf) -> mp.mpf:
        """∫(q − e^ε p)₊ = e^ε·δ(−ε) − e^ε + 1, and 0 beyond the largest loss."""
        if self.threshold(-epsilon) == -mp.inf:
            return mp.mpf(0)
        return mp.exp(epsilon) * self.delta(-epsilon) - mp.expm1(epsilon)

    def mean_of(self, function: Callable[[mp.mpf], mp.mpf], top: mp.mpf) -> mp.mpf:
        """∫ p·function by the trapezoidal rule, from −14σ to `top`: analytic, so its error is below e^{−2π²·10σ}."""
        step = self.s * min(self.s, mp.mpf(1)) / 8
        first, last = int(mp.floor(-14 * self.s / step)), int(mp.ceil(top / step))
        points = (k * step for k in range(first, last + 1))
        scale = step / (self.s * mp.sqrt(2 * mp.pi))
        return scale * mp.fsum(
            mp.exp(-x * x / (2 * self.s**2)) * self.ratio(self.away[0], x) * function(x) for x in points
        )


def sampled_gaussian_delta(
    sampling: str, rate: float, noise: float, epsilon: float, *, backward: bool = False
) -> mp.mpf:
    """One step on a random batch; the explicit neighbours that attain it."""
    with mp.extradps(60 + int(40 / mp.mpf(noise))):
        pair = _Mixtures(sampling, rate, noise)
        return pair.reverse_delta(mp.mpf(epsilon)) if backward else pair.delta(mp.mpf(epsilon))


def sampled_gaussian_twice_delta(sampling: str, rate: float, noise: float, epsilon: float) -> mp.mpf:
    """Two steps of the same neighbours: the second one's profile averaged over the loss of the first.

    Where losses are bounded below, by log(1 − q), the profile is not analytic there: the integral is cut at that place.
    """
    pair, level = _Mixtures(sampling, rate, noise), mp.mpf(epsilon)
    top = 2 + 14 * pair.s

    def second(x: mp.mpf) -> mp.mpf:
        return pair.delta(level - pair.loss(x))

    if sampling == "poisson" or rate == 1:
        return pair.mean_of(second, top)

    def density(x: mp.mpf) -> mp.mpf:
        return mp.npdf(x, 0, pair.s) * pair.ratio(pair.away[0], x) * second(x)

    cut = pair.threshold(level - mp.log1p(-pair.q))
    cuts = [-14 * pair.s, *([cut] if -14 * pair.s < cut < top else []), top]
    value, error = mp.quad(density, cuts, maxdegree=7, error=True)
    return value - error


def sampled_gaussian_renyi(sampling: str, rate: float, noise: float, alpha: float) -> mp.mpf:
    """log ∫ p·e^{(α−1)·loss}, over α − 1."""
    pair, power = _Mixtures(sampling, rate, noise), mp.mpf(alpha) - 1
    moment = pair.mean_of(lambda x: mp.exp(power * pair.loss(x)), 2 * mp.mpf(alpha) + 2 + 14 * pair.s)
    return mp.log(moment) / power


def sampled_laplace_delta(
    sampling: str, rate: float, noise: float, epsilon: float, *, backward: bool = False
) -> mp.mpf:
    """The divergence of the worst mixtures of Laplace laws, over half-lines: between corners a·e^x + b·e^−x + c."""
    q, s, grow = mp.mpf(rate), mp.mpf(noise), mp.exp(mp.mpf(epsilon))
    away = {"poisson": (1, -1), "fixed-size": (2, 0), "poisson-add-remove": (1, 0)}[sampling]
    sign, order = (-1, away[::-1]) if backward and sampling == "poisson-add-remove" else (1, away)

    def beyond(mean: int, x: mp.mpf) -> mp.mpf:
        def tail(y: mp.mpf) -> mp.mpf:
            return mp.exp(-y / s) / 2 if y > 0 else 1 - mp.exp(y / s) / 2

        return (1 - q) * tail(sign * x) + q * tail(sign * (x - mean))

    def value(x: mp.mpf) -> mp.mpf:
        return beyond(order[0], x) - grow * beyond(order[1], x)

    best = max(mp.mpf(0), -mp.expm1(mp.mpf(epsilon)))
    for start in (-1, 0, 1):
        points = [start + mp.mpf(k) / 2 for k in range(3)]
        basis = mp.matrix([[mp.exp(x / s), mp.exp(-x / s), 1] for x in points])
        a, b, _ = mp.lu_solve(basis, mp.matrix([value(x) for x in points]))
        inside = s / 2 * mp.log(b / a) if a * b > 0 else points[0]
        best = max(best, *(value(x) for x in (*points, min(max(inside, points[0]), points[2]))))
    return best


def rare_events_delta(
    rate: float, noise: float, steps: int, epsilon: float, cuts: Sequence[float], most: int
) -> mp.mpf:
    """A lower bound on δ of Poisson-sampled steps under replace-one: each step told as the cell of its outcome, or as
    below all `cuts`, and no more than `most` of them above; every other outcome is left out."""
    pair = _Mixtures("poisson", rate, noise)
    cells = [
        [pair.above(mean, a) - pair.above(mean, b) for a, b in itertools.pairwise([*map(mp.mpf, cuts), mp.inf])]
        for mean in pair.away
    ]
    rests = [1 - mp.fsum(masses) for masses in cells]
    grow, total = mp.exp(mp.mpf(epsilon)), mp.mpf(0)
    for many in range(most + 1):
        for told in itertools.combinations_with_replacement(range(len(cuts)), many):
            ways = mp.binomial(steps, many) * mp.factorial(many)
            ways /= mp.fprod(mp.factorial(told.count(cell)) for cell in set(told))
            p, q = (
                mp.fprod(masses[cell] for cell in told) * rest ** (steps - many)
                for masses, rest in zip(cells, rests, strict=True)
            )
            total += max(ways * (p - grow * q), mp.mpf(0))
    return total


def riemannian_delta(kind: str, dim: int, sigma: float, sensitivity: float, epsilon: float) -> mp.mpf:
    """The formulas of MATH.md section 5 with 60 digits, by the oracle that wrote frozen/hard_profiles.json."""
    with mp.workdps(60):
        from tests.privacy.freeze_hard_profiles import Oracle

        return Oracle(kind, dim, sigma, sensitivity).delta_at(epsilon)[0]
