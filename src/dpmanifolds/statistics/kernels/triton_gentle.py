"""Logarithms of gentle 3×3 matrices in closed form, in registers: the formulas of `gentle.py`, with as little double
precision as they need.

Reciprocals, roots and the angle start from single precision. One step of third order, or of Newton, makes doubles of
them. Products are added without rounding between, by name, so that every variant of a kernel has the same bits.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def number(like, value: tl.constexpr):
    """A constant in double precision; `tl.fma` makes single precision of plain ones."""
    return tl.full(like.shape, value, tl.float64)


@triton.jit
def high_word(x):
    """Sign, exponent and twenty bits of a double, an integer in the same order for positive ones."""
    return (x.to(tl.int64, bitcast=True) >> 32).to(tl.int32)


@triton.jit
def reciprocal(x):
    """1/x for what single precision can hold."""
    seed = (1.0 / x.to(tl.float32)).to(tl.float64)
    rest = tl.fma(-x, seed, number(x, 1.0))
    return tl.fma(seed, tl.fma(rest, rest, rest), seed)


@triton.jit
def reciprocal_root(x):
    """1/√x for what single precision can hold."""
    seed = libdevice.rsqrt(x.to(tl.float32)).to(tl.float64)
    rest = tl.fma(-x * seed, seed, number(x, 1.0))
    return tl.fma(seed * rest, tl.fma(rest, number(x, 0.375), number(x, 0.5)), seed)


@triton.jit
def _parts(x):
    """k and m with x = 2ᵏ·m and m between 1/√2 and √2, for positive normal numbers."""
    power = (high_word(x) - 0x3FE6A09E) >> 20
    return power, (x.to(tl.int64, bitcast=True) - (power.to(tl.int64) << 52)).to(tl.float64, bitcast=True)


@triton.jit
def _log_of_part(rest):
    """log(1 + rest)/rest, rest between 1/√2 − 1 and √2 − 1, by the series of artanh."""
    half = reciprocal(rest + 2.0)
    u = rest * half
    v = u * u
    s = tl.fma(v, number(v, 1 / 21), number(v, 1 / 19))
    s = tl.fma(v, s, number(v, 1 / 17))
    s = tl.fma(v, s, number(v, 1 / 15))
    s = tl.fma(v, s, number(v, 1 / 13))
    s = tl.fma(v, s, number(v, 1 / 11))
    s = tl.fma(v, s, number(v, 1 / 9))
    s = tl.fma(v, s, number(v, 1 / 7))
    s = tl.fma(v, s, number(v, 1 / 5))
    s = tl.fma(v, s, number(v, 1 / 3))
    return tl.fma(v, s, number(v, 1.0)) * (half + half)


@triton.jit
def _log(x):
    power, part = _parts(x)
    rest = part - 1.0
    return tl.fma(power.to(tl.float64), number(x, 0.6931471805599453), rest * _log_of_part(rest))


@triton.jit
def _log1p_over(x):
    """log(1 + x)/x for x ≥ 0, and 1 for x = 0."""
    power, part = _parts(x + 1.0)
    near = power == 0
    rest = tl.where(near, x, part - 1.0)
    share = _log_of_part(rest)
    whole = tl.fma(power.to(tl.float64), number(x, 0.6931471805599453), rest * share)
    return tl.where(near, share, whole * reciprocal(tl.where(near, number(x, 1.0), x)))


@triton.jit
def _minor(a, b, c, d):
    return tl.fma(a, d, -(b * c))


@triton.jit
def _squares(a, b, c, d, sofar):
    """sofar + (ad − bc)²."""
    minor = _minor(a, b, c, d)
    return tl.fma(minor, minor, sofar)


@triton.jit
def _third_of_angle(x, y):
    """Cosine and sine of a third of the angle of (x, y), a unit vector with y ≥ 0."""
    angle = libdevice.atan2(y.to(tl.float32), x.to(tl.float32)) * 0.33333333
    c, s = libdevice.fast_cosf(angle).to(tl.float64), libdevice.fast_sinf(angle).to(tl.float64)
    long = tl.fma(c, c, tl.fma(s, s, number(c, -1.0)))
    short = tl.fma(long, tl.fma(long, number(c, 0.375), number(c, -0.5)), number(c, 1.0))
    c, s = c * short, s * short
    cc, ss = c * c, s * s
    triple_c, triple_s = c * tl.fma(ss, number(c, -3.0), cc), s * tl.fma(cc, number(c, 3.0), -ss)
    turn = tl.fma(y, triple_c, -(x * triple_s)) * (1 / 3)
    bend = turn * turn * -0.5
    return c + tl.fma(c, bend, -(s * turn)), s + tl.fma(s, bend, c * turn)


@triton.jit
def gentle_logarithm(w00, w01, w02, w11, w12, w22):
    """Entries 00, 11, 22, 01, 02, 12 of the logarithm, and whether the matrix is gentle; others have any."""
    mean = (w00 + w11 + w22) * (1 / 3)
    # an exponent between −100 and 100
    word = high_word(mean)
    gentle = (word > (923 << 20)) & (word < (1123 << 20))
    mean = tl.where(gentle, mean, number(mean, 1.0))
    per = reciprocal(mean)
    b00, b11, b22 = w00 * per - 1.0, w11 * per - 1.0, w22 * per - 1.0
    b01, b02, b12 = w01 * per, w02 * per, w12 * per
    q01, q02, q12 = b01 * b01, b02 * b02, b12 * b12
    s00, s11, s22 = tl.fma(b00, b00, q01 + q02), tl.fma(b11, b11, q01 + q12), tl.fma(b22, b22, q02 + q12)
    s01 = tl.fma(b02, b12, b01 * (b00 + b11))
    s02 = tl.fma(b01, b12, b02 * (b00 + b22))
    s12 = tl.fma(b01, b02, b12 * (b11 + b22))
    trace = s00 + s11 + s22
    third = trace * (1 / 3)
    # 6 at most where all eigenvalues are positive; the comparison is false for what is not a number
    gentle = gentle & (trace < 8.0)
    u0, u1 = (b00 - b11) * 0.5, b22 * 0.8660254037844386
    v0, v1 = (s00 - s11) * 0.5, (s22 - third) * 0.8660254037844386
    gram = _squares(u0, u1, v0, v1, number(mean, 0.0))
    gram = _squares(u0, b01, v0, s01, gram)
    gram = _squares(u0, b02, v0, s02, gram)
    gram = _squares(u0, b12, v0, s12, gram)
    gram = _squares(u1, b01, v1, s01, gram)
    gram = _squares(u1, b02, v1, s02, gram)
    gram = _squares(u1, b12, v1, s12, gram)
    gram = _squares(b01, b02, s01, s02, gram)
    gram = _squares(b01, b12, s01, s12, gram)
    gram = _squares(b02, b12, s02, s12, gram)
    off = tl.fma(b01, s01, tl.fma(b02, s02, b12 * s12))
    cubes = tl.fma(b00, s00, tl.fma(b11, s11, tl.fma(b22, s22, off + off)))
    # what would leave single precision is a multiple of the identity up to rounding, and any angle serves
    spread = tl.maximum(trace * (1 / 6), number(mean, 2.0**-110))
    root = reciprocal_root(spread)
    half, cubed = spread * root, root * root * root
    x = cubes * cubed * (1 / 6)
    sine_square = tl.maximum(gram * cubed * cubed * (1 / 9), number(mean, 2.0**-110))
    y = sine_square * reciprocal_root(sine_square)
    cosine, sine = _third_of_angle(x, y)
    along, across = half * cosine, half * sine * 1.7320508075688772
    e1 = tl.fma(along, number(mean, 2.0), number(mean, 1.0))
    e2, e3 = 1.0 - along + across, 1.0 - along - across
    gentle = gentle & (high_word(e3) > (1005 << 20))
    e2, e3 = tl.where(gentle, e2, number(mean, 1.0)), tl.where(gentle, e3, number(mean, 1.0))
    e1 = tl.where(gentle, e1, number(mean, 1.0))
    upper = tl.maximum(tl.fma(along, number(mean, 3.0), -across), number(mean, 0.0))
    lower = across + across
    upper, lower = tl.where(gentle, upper, number(mean, 0.0)), tl.where(gentle, lower, number(mean, 0.0))
    r2, r3 = reciprocal(e2), reciprocal(e3)
    slope = _log1p_over(upper * r2) * r2
    width = tl.maximum(upper + lower, number(mean, 2.0**-110))
    bend = (slope - _log1p_over(lower * r3) * r3) * reciprocal(width)
    # slope·(B − a) + bend·(B − a)(B − b), with the eigenvalues a, b and −a − b of B
    a, b = along + along, across - along
    linear = tl.fma(bend, -(a + b), slope)
    top = tl.fma(a, tl.fma(bend, b, -slope), _log(mean * e1))
    l00 = tl.fma(bend, s00, tl.fma(linear, b00, top))
    l11 = tl.fma(bend, s11, tl.fma(linear, b11, top))
    l22 = tl.fma(bend, s22, tl.fma(linear, b22, top))
    l01 = tl.fma(bend, s01, linear * b01)
    l02 = tl.fma(bend, s02, linear * b02)
    l12 = tl.fma(bend, s12, linear * b12)
    return l00, l11, l22, l01, l02, l12, gentle
