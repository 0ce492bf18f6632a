"""The last step of Theorems S1 and S1w, by interval arithmetic (Arb, through python-flint).

Claim (★) of docs/proofs/sensitivity_of_mean.md: for 0 ≤ t ≤ r < π/2 and 0 ≤ s < 1,

    t·cot(t) · √(1−s²) · k(ρ) ≤ k(ρ*),   k(x) = x/sin x,  cos ρ = cos r cos t − s sin r sin t,  cos ρ* = cos r/cos t.

The square (r, t/r) ∈ [0, π/2]×[0, 1] is cut into boxes until each is settled by one of two tests:
`near`, the lower bound (N) of the slack divided by r²t², which stays above zero where the claim is tight;
`far`, the claim itself at the worst corner of cells in s, by the monotonicity of each factor.
Every number is an Arb ball; a comparison is true only if it holds for all points of the balls.

    python certificates/sensitivity.py
"""

from __future__ import annotations

import sys
import time

from flint import arb, ctx

PRECISION = 128
SMALLEST = 2**-14
MOST_CELLS = 64


def k(x: arb) -> arb:
    """x/sin x."""
    return 1 / x.sinc()


def j(x: arb) -> arb:
    """(sin x − x cos x)/(x sin²x) for x of at least 1/100."""
    sine, cosine = x.sin_cos()
    return (sine - x * cosine) / (x * sine * sine)


def at_least(x: arb, floor: float = 0.01) -> arb:
    """An upper end for increasing functions, kept away from 0 where their formulas lose digits."""
    return x if x > floor / 2 else arb(floor)


def distance(cosine: arb) -> arb:
    """arccos, for a thin ball inside (−1, 1)."""
    return cosine.acos()


def near(r0: arb, r1: arb, a0: arb, a1: arb) -> arb:
    """A lower bound (N) of the slack of (★), in logarithms and over r²t², on r ∈ [r0, r1], t/r ∈ [a0, a1]."""
    t0, t1 = r0 * a0, at_least(r1 * a1)
    r1 = at_least(r1)
    if not r1 + t1 < arb.pi() - arb("0.001"):
        return arb(-1)
    rho = distance(r1.cos() * t1.cos())
    slope = (j(rho) - arb(1) / 3) / (1 - r1.cos() * t1.cos())
    bend = t1.sin() * t1.tan() / (t1 * t1)
    share = arb(1) / 3 - slope * r0.cos() * bend
    half_lower, half_upper = (r1 / 2).sinc() ** 2 / 2, (r0 / 2).sinc() ** 2 / 2
    first = share * (half_lower if share > 0 else half_upper)
    excess = (bend - 1) / (t1 * t1) * r0.cos() / 3 - arb(7) / 90
    second = excess * (a0 * a0 if excess < 0 else a1 * a1)
    pull = largest_pull(r1, t1) * r0.sinc() * t0.sinc()
    return first - second - pull * pull / 2


def largest_pull(r1: arb, t1: arb) -> arb:
    """An upper bound of j(ρ) over those s at which the slack is below its value at s = 0: s < 2 j sin r sin t."""
    across = r1.sin() * t1.sin()
    value = j(r1 + t1)
    for _ in range(4):
        s = 2 * value * across
        if not s < 1:
            return value
        value = j(distance(r1.cos() * t1.cos() - s * across))
    return value


def far(r0: arb, r1: arb, a0: arb, a1: arb, cells: int) -> bool:
    """Whether (★) holds strictly on r ∈ [r0, r1], t/r ∈ [a0, a1] and all s, cut into cells of equal arc cos s."""
    t0, t1 = r0 * a0, r1 * a1
    ratio = r0.cos() / t1.cos()
    goal = k(distance(ratio)) if ratio < 1 else arb(1)
    flat = t0 * t0.cot() if t0 > 0 else arb(1)
    cosines, sines = r1.cos() * t1.cos(), r1.sin() * t1.sin()
    for cell in range(cells):
        wide, narrow = arb.pi() / 2 * (cells - cell) / cells, arb.pi() / 2 * (cells - cell - 1) / cells
        if not flat * wide.sin() * k(distance(cosines - narrow.cos() * sines)) < goal:
            return False
    return True


def beyond(r0: arb, r1: arb, a0: arb, a1: arb) -> bool:
    """Whether t·cot(t)·(r + t)/sin r < k(ρ*) on the box, which implies (★): √(1−s²)/sin ρ ≤ 1/sin r. For r to π/2."""
    t0, t1 = r0 * a0, r1 * a1
    ratio = r0.cos() / t1.cos() if t1 < arb.pi() / 2 else arb(1)
    goal = k(distance(ratio)) if ratio < 1 else arb(1)
    return bool(t0 * t0.cot() * (r1 + t1) / r0.sin() < goal) if t0 > 0 else False


def settled(r0: arb, r1: arb, a0: arb, a1: arb) -> str:
    """The test that settles a box, or nothing."""
    if near(r0, r1, a0, a1) > 0:
        return "near"
    if beyond(r0, r1, a0, a1):
        return "beyond"
    cells = 8
    if r1 + r1 * a1 < arb.pi():
        while cells <= MOST_CELLS:
            if far(r0, r1, a0, a1, cells):
                return "far"
            cells *= 2
    return ""


def certify() -> dict[str, int]:
    """Settle all of [0, π/2]×[0, 1]; the counts of boxes by test."""
    counts = {"near": 0, "beyond": 0, "far": 0}
    todo = [(0.0, 1.0, 0.0, 1.0)]
    half_pi = arb.pi() / 2
    while todo:
        x0, x1, a0, a1 = todo.pop()
        test = settled(half_pi * x0, half_pi * x1, arb(a0), arb(a1))
        if test:
            counts[test] += 1
            continue
        if x1 - x0 < SMALLEST:
            raise ArithmeticError(f"not settled: r/(π/2) in [{x0}, {x1}], t/r in [{a0}, {a1}]")
        x, a = (x0 + x1) / 2, (a0 + a1) / 2
        todo += [(x0, x, a0, a), (x0, x, a, a1), (x, x1, a0, a), (x, x1, a, a1)]
    return counts


def main() -> int:
    """Print what is certified; 1 if anything is not."""
    ctx.prec = PRECISION
    start = time.perf_counter()
    try:
        counts = certify()
    except ArithmeticError as problem:
        print(f"S1, S1w: NOT certified: {problem}")
        return 1
    boxes = ", ".join(f"{count} by {test}" for test, count in counts.items())
    print(f"S1, S1w: certified for 0 ≤ t ≤ r < π/2; boxes: {boxes}; {time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
