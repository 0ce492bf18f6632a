"""Symmetric 3×3 matrices in registers, for the kernels of `triton.py`: entries, rotations, logarithms, integers."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator"
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def read_entries(points, at, there, K: tl.constexpr):
    """All nine entries; a smaller matrix is padded with its first one, which is none of the extreme eigenvalues."""
    first = points + at * (K * K)
    x00 = tl.load(first, mask=there, other=1.0)
    x01, x02, x12, x11, x22 = x00 * 0, x00 * 0, x00 * 0, x00, x00
    x10, x20, x21 = x01, x02, x12
    if K > 1:
        x01 = tl.load(first + 1, mask=there, other=0.0)
        x10 = tl.load(first + K, mask=there, other=0.0)
        x11 = tl.load(first + K + 1, mask=there, other=1.0)
    if K > 2:
        x02 = tl.load(first + 2, mask=there, other=0.0)
        x12 = tl.load(first + 5, mask=there, other=0.0)
        x20 = tl.load(first + 6, mask=there, other=0.0)
        x21 = tl.load(first + 7, mask=there, other=0.0)
        x22 = tl.load(first + 8, mask=there, other=1.0)
    return x00, x01, x02, x10, x11, x12, x20, x21, x22


@triton.jit
def whiten(numbers, x00, x01, x02, x10, x11, x12, x20, x21, x22, K: tl.constexpr):
    """M X Mᵀ, M the first nine of the numbers; what is padded stays so."""
    m00, m01, m02 = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    m10, m11, m12 = tl.load(numbers + 3), tl.load(numbers + 4), tl.load(numbers + 5)
    m20, m21, m22 = tl.load(numbers + 6), tl.load(numbers + 7), tl.load(numbers + 8)
    h00, h01, h02 = _product(m00, m01, m02, x00, x01, x02, x10, x11, x12, x20, x21, x22)
    h10, h11, h12 = _product(m10, m11, m12, x00, x01, x02, x10, x11, x12, x20, x21, x22)
    h20, h21, h22 = _product(m20, m21, m22, x00, x01, x02, x10, x11, x12, x20, x21, x22)
    w00 = h00 * m00 + h01 * m01 + h02 * m02
    w01 = h00 * m10 + h01 * m11 + h02 * m12
    w02 = h00 * m20 + h01 * m21 + h02 * m22
    w11 = h10 * m10 + h11 * m11 + h12 * m12
    w12 = h10 * m20 + h11 * m21 + h12 * m22
    w22 = h20 * m20 + h21 * m21 + h22 * m22
    if K < 2:
        w11 = w00
    if K < 3:
        w22 = w00
    return w00, w01, w02, w11, w12, w22


@triton.jit
def sort_three(a, b, c):
    """The largest first."""
    low, high = tl.minimum(a, b), tl.maximum(a, b)
    return tl.maximum(high, c), tl.maximum(low, tl.minimum(high, c)), tl.minimum(low, c)


@triton.jit
def logarithm(w00, w01, w02, w11, w12, w22, l1, l2, l3, root):
    """Newton interpolation of log at the eigenvalues, in orthonormal coordinates."""
    one = l1 * 0 + 1
    slope = _log_slope(l1, l2, one)
    width = l1 - l3
    bend = (slope - _log_slope(l2, l3, one)) / tl.where(width > 0, width, one)
    f00, f11, f22 = w00 - l1, w11 - l1, w22 - l1
    g00, g11, g22 = w00 - l2, w11 - l2, w22 - l2
    top = libdevice.log(l1)
    y0 = slope * f00 + top + bend * (f00 * g00 + w01 * w01 + w02 * w02)
    y1 = slope * f11 + top + bend * (w01 * w01 + f11 * g11 + w12 * w12)
    y2 = slope * f22 + top + bend * (w02 * w02 + w12 * w12 + f22 * g22)
    y3 = root * (slope * w01 + bend * (f00 * w01 + w01 * g11 + w02 * w12))
    y4 = root * (slope * w02 + bend * (f00 * w02 + w01 * w12 + w02 * g22))
    y5 = root * (slope * w12 + bend * (w01 * w02 + f11 * w12 + w12 * g22))
    return y0, y1, y2, y3, y4, y5


@triton.jit
def eliminates(a00, a01, a02, a11, a12, a22, floor):
    """Whether Gaussian elimination of a − floor·I has positive pivots."""
    a00, a11, a22 = a00 - floor, a11 - floor, a22 - floor
    first, second = a01 / a00, a02 / a00
    b11, b12, b22 = a11 - first * a01, a12 - first * a02, a22 - second * a02
    return (a00 > 0) & (b11 > 0) & (b22 - b12 / b11 * b12 > 0)


@triton.jit
def round_entry(entry, factor, usable, scale):
    """Integers for usable rows, 0 for the others; cut to what a coordinate of the ball can be."""
    nearest = libdevice.floor(tl.where(usable, entry * factor, tl.zeros_like(entry)) + 0.5)
    return tl.minimum(tl.maximum(nearest, -scale), scale).to(tl.int64)


@triton.jit
def _product(a, b, c, x00, x01, x02, x10, x11, x12, x20, x21, x22):
    return a * x00 + b * x10 + c * x20, a * x01 + b * x11 + c * x21, a * x02 + b * x12 + c * x22


@triton.jit
def rotation(p, q, off, left, right, tiny):
    """Make the entry between p and q zero; `left` and `right` stand beside p and q in the third row."""
    gap = q - p
    twice = 2 * off
    root = libdevice.sqrt(gap * gap + twice * twice) + tiny
    tangent = twice / (gap + tl.where(gap < 0, -root, root))
    cosine = libdevice.rsqrt(1 + tangent * tangent)
    sine = tangent * cosine
    change = tangent * off
    left, right = cosine * left - sine * right, sine * left + cosine * right
    return p - change, q + change, left, right, cosine, sine


@triton.jit
def turn(cosine, sine, a, b):
    """Two entries after a rotation."""
    return cosine * a - sine * b, sine * a + cosine * b


@triton.jit
def _log_slope(a, b, one):
    x = (a - b) / b
    apart = tl.abs(x) > 0
    safe = tl.where(apart, x, one)
    return tl.where(apart, libdevice.log1p(safe) / safe, one) / b


@triton.jit
def excess(p, q, small):
    """x·coth(x) − 1 for x = |log p − log q|/2."""
    half = tl.abs(libdevice.log(p) - libdevice.log(q)) / 2
    return (half + small) * (p + q) / (tl.abs(p - q) + small * (p + q)) - 1


@triton.jit
def axis(a0, a1, a2, b0, b1, b2, root):
    """√2 times the symmetric part of abᵀ, in orthonormal coordinates."""
    return root * a0 * b0, root * a1 * b1, root * a2 * b2, a0 * b1 + a1 * b0, a0 * b2 + a2 * b0, a1 * b2 + a2 * b1
