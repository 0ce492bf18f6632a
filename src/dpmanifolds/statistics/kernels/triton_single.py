"""Logarithms of gentle 3×3 matrices in closed form, in single precision, for records that are no more precise.

The formulas of `gentle.py`. Rounding stays inside the record: errors are some units of 2⁻²⁴ times the condition, as
those that storing the record in single precision made. Gentle here are conditions up to some 200; others take doubles.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def _dot(a, b, c, d, sofar):
    """sofar + ab + cd."""
    return tl.fma(a, b, tl.fma(c, d, sofar))


@triton.jit
def _squares(a, b, c, d, sofar):
    """sofar + (ad − bc)²."""
    minor = tl.fma(a, d, -(b * c))
    return tl.fma(minor, minor, sofar)


@triton.jit
def _over(a, b):
    """a/b, b of a plain size."""
    return libdevice.fast_dividef(a, b)


@triton.jit
def _log1p_over(x):
    """log(1 + x)/x for x ≥ 0, and 1 for x = 0."""
    near = x < 1e-30
    return tl.where(near, 1.0, _over(libdevice.log1p(x), tl.where(near, 1.0, x)))


@triton.jit
def _third_of_angle(x, y):
    """Cosine and sine of a third of the angle θ of (x, y), y ≥ 0, up to 3·10⁻⁸.

    With s = cos(θ/2), between 0 and 1, the cosine is a smooth function of s, and so is the sine over sin(θ/2).
    """
    length = libdevice.rsqrt(tl.maximum(tl.fma(x, x, y * y), 1e-30))
    x, y = x * length, y * length
    large = tl.fma(tl.abs(x), 0.5, 0.5)
    root = libdevice.rsqrt(large)
    large, small = large * root, y * root * 0.5
    s, t = tl.where(x >= 0, large, small), tl.where(x >= 0, small, large)
    c = tl.fma(s, 0.001150429007, -0.006169949684)
    c = tl.fma(s, c, 0.01615948918)
    c = tl.fma(s, c, -0.03031306311)
    c = tl.fma(s, c, 0.05286910595)
    c = tl.fma(s, c, -0.1110432395)
    c = tl.fma(s, c, 0.5773472225)
    c = tl.fma(s, c, 0.5000000228)
    d = tl.fma(s, 0.005056368839, -0.02810172807)
    d = tl.fma(s, d, 0.07282880958)
    d = tl.fma(s, d, -0.1226843769)
    d = tl.fma(s, d, 0.1623930678)
    d = tl.fma(s, d, -0.1959421459)
    d = tl.fma(s, d, 0.2404195962)
    d = tl.fma(s, d, -0.3333282773)
    d = tl.fma(s, d, 0.866025374)
    return c, t * d


@triton.jit
def single_logarithm(w00, w01, w02, w11, w12, w22):
    """Entries 00, 11, 22, 01, 02, 12 of the logarithm, and whether the matrix is gentle; others have any."""
    mean = (w00 + w11 + w22) * 0.33333333
    # cubes of roots of what follows stay in range
    gentle = (mean > 2.0**-60) & (mean < 2.0**60)
    mean = tl.where(gentle, mean, 1.0)
    per = _over(1.0, mean)
    b00, b11, b22 = (w00 - mean) * per, (w11 - mean) * per, (w22 - mean) * per
    b01, b02, b12 = w01 * per, w02 * per, w12 * per
    q01, q02 = b01 * b01, b02 * b02
    s00, s11 = tl.fma(b00, b00, q01 + q02), _dot(b11, b11, b12, b12, q01)
    s22 = _dot(b22, b22, b12, b12, q02)
    s01 = tl.fma(b02, b12, b01 * (b00 + b11))
    s02 = tl.fma(b01, b12, b02 * (b00 + b22))
    s12 = tl.fma(b01, b02, b12 * (b11 + b22))
    trace = s00 + s11 + s22
    # 6 at most where all eigenvalues are positive; the comparison is false for what is not a number
    gentle = gentle & (trace < 8.0)
    u0, u1 = (b00 - b11) * 0.5, b22 * 0.8660254
    v0, v1 = (s00 - s11) * 0.5, tl.fma(trace, -0.33333333, s22) * 0.8660254
    gram = _squares(u0, u1, v0, v1, trace * 0.0)
    gram = _squares(u0, b01, v0, s01, gram)
    gram = _squares(u0, b02, v0, s02, gram)
    gram = _squares(u0, b12, v0, s12, gram)
    gram = _squares(u1, b01, v1, s01, gram)
    gram = _squares(u1, b02, v1, s02, gram)
    gram = _squares(u1, b12, v1, s12, gram)
    gram = _squares(b01, b02, s01, s02, gram)
    gram = _squares(b01, b12, s01, s12, gram)
    gram = _squares(b02, b12, s02, s12, gram)
    off = tl.fma(b01, s01, _dot(b02, s02, b12, s12, trace * 0.0))
    cubes = tl.fma(b00, s00, _dot(b11, s11, b22, s22, off + off))
    # what is a multiple of the identity up to some rounding has any angle
    square = trace * 0.16666667
    root = libdevice.rsqrt(tl.maximum(square, 2.0**-40))
    half, cubed = square * root, root * root * root
    sine = libdevice.rsqrt(tl.maximum(gram, 2.0**-120)) * gram * cubed * 0.33333333
    cosine, sine = _third_of_angle(cubes * cubed * 0.16666667, sine)
    along, across = half * cosine, half * sine * 1.7320508
    e1, e2, e3 = tl.fma(along, 2.0, 1.0), 1.0 - along + across, 1.0 - along - across
    gentle = gentle & (e3 > 2.0**-6)
    e1, e2, e3 = tl.where(gentle, e1, 1.0), tl.where(gentle, e2, 1.0), tl.where(gentle, e3, 1.0)
    upper = tl.where(gentle, tl.maximum(tl.fma(along, 3.0, -across), 0.0), 0.0)
    lower = tl.where(gentle, across + across, 0.0)
    r2, r3 = _over(1.0, e2), _over(1.0, e3)
    slope = _log1p_over(upper * r2) * r2
    bend = _over(tl.fma(_log1p_over(lower * r3), -r3, slope), tl.maximum(upper + lower, 2.0**-40))
    # slope·(B − a) + bend·(B − a)(B − b), with the eigenvalues a, b and −a − b of B
    a, b = along + along, across - along
    linear = tl.fma(bend, -(a + b), slope)
    top = tl.fma(a, tl.fma(bend, b, -slope), libdevice.log(mean * e1))
    l00 = _dot(bend, s00, linear, b00, top)
    l11 = _dot(bend, s11, linear, b11, top)
    l22 = _dot(bend, s22, linear, b22, top)
    l01, l02, l12 = tl.fma(bend, s01, linear * b01), tl.fma(bend, s02, linear * b02), tl.fma(bend, s12, linear * b12)
    return l00, l11, l22, l01, l02, l12, gentle
