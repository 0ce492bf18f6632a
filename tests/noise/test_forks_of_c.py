"""Forks that Python does not hear of: C code forks too, and no two children may draw the same noise."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, json, os
import numpy as np
import dpmanifolds as dpm
from dpmanifolds.intrinsic import RiemannianGaussian, RiemannianLaplace, WrappedLaplace
from dpmanifolds.noise import LatticeGaussian, LatticeLaplace, RoundedGaussian, RoundedLaplace, as_generator
from dpmanifolds.noise.symmetric import SymmetricGaussian, SymmetricLaplace, WishartDifference
from dpmanifolds.descent import plan_descent, private_svrg
from dpmanifolds.descent.losses import FrechetMeanLoss
from dpmanifolds.sums.noisy import NoiseSource

held = as_generator()
bits = held.bit_generator
held.integers(2**32, size=3, dtype=np.uint32)
north, eye = np.array([0.0, 0.0, 1.0]), np.eye(2)
ball = dpm.Ball(dpm.SPD(2), eye, radius=1.5)
flat = dpm.Ball(dpm.Sphere(2), north, radius=0.4)
records, points = dpm.SPD(2).random_point(60, rng=0), flat.clip(dpm.Sphere(2).random_point(60, rng=0))
zeros, square = np.zeros(3, dtype=np.int64), np.zeros((3, 3), dtype=object)
loss, approx = FrechetMeanLoss(ball), dpm.ApproxDP(1.0, 1e-6)
plans = {
    kind: plan_descent(n=4000, clip_norm=1.0, sigma=1.0, steps=2, batch_size=400, sampling=kind)
    for kind in ("poisson", "without-replacement")
}


def mean(mechanism, numerics="safe"):
    return dpm.private_mean(points, flat, dpm.PureDP(1.0), mechanism=mechanism, numerics=numerics).value


KINDS = {
    "a generator held in a variable": lambda: held.bytes(64),
    "its bits": lambda: bits.random_raw(8),
    "rounded gaussian": lambda: RoundedGaussian(3, 2.0**30).release(zeros),
    "rounded laplace": lambda: RoundedLaplace(3, 2.0**30).release(zeros),
    "lattice gaussian": lambda: LatticeGaussian(3, 2.0**30).release(zeros),
    "lattice laplace": lambda: LatticeLaplace(3, 2.0**30).release(zeros),
    "symmetric gaussian": lambda: SymmetricGaussian(3, 2.0**30).release(square),
    "symmetric laplace": lambda: SymmetricLaplace(3, 2.0**30).release(square),
    "wishart": lambda: WishartDifference(3, 2.0**30).release(square),
    "laplace on a sphere": lambda: RiemannianLaplace(dpm.Sphere(2), north, 0.1).sample(),
    "laplace on matrices": lambda: RiemannianLaplace(dpm.SPD(2), eye, 0.1).sample(),
    "laplace on rotations": lambda: RiemannianLaplace(dpm.SpecialOrthogonal(3), np.eye(3), 0.1).sample(),
    "gaussian on a hyperbolic space": lambda: RiemannianGaussian(
        dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin, 0.1
    ).sample(),
    "wrapped laplace": lambda: WrappedLaplace(dpm.Sphere(2), north, 0.1).sample(),
    "random points": lambda: dpm.Sphere(2).random_point(2),
    "poisson batches": lambda: plans["poisson"].draw_batch(4000, NoiseSource(held)),
    "batches of one size": lambda: plans["without-replacement"].draw_batch(4000, NoiseSource(held)),
    "mean": lambda: mean("auto"),
    "k-norm gradient": lambda: mean("k-norm-gradient", "idealized"),
    # at this budget forty scales of noise lie between the variance and the largest one that is ever told
    "variance": lambda: dpm.private_variance(points, flat, dpm.PureDP(30.0)).value,
    "descent": lambda: dpm.private_descent(
        loss, records, dpm.SPD(2), approx, start=eye, steps=2, step_size=0.5
    ).value,
    "svrg": lambda: private_svrg(
        loss, records, dpm.SPD(2), approx, start=eye, anchors=1, inner=1, step_size=0.4, smoothness=2.0,
        batch_size=30,
    ).point,
}


def told(draw):
    drawn = draw()
    return drawn if isinstance(drawn, bytes) else repr(np.asarray(drawn).tolist()).encode()


def in_child(draw):
    reader, writer = os.pipe()
    child = ctypes.CDLL(None).fork()
    if child == 0:
        try:
            os.write(writer, told(draw))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        drawn = stream.read()
    os.waitpid(child, 0)
    return drawn


found = {}
for name, draw in KINDS.items():
    told(draw)
    drawn = [in_child(draw), in_child(draw), told(draw)]
    found[name] = len(set(drawn)) == 3 and all(drawn)
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="this system cannot fork")
def test_children_of_a_fork_in_c_draw_noise_of_their_own():
    """Two children and their parent, for every kind of noise that the library draws."""
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert len(found) == 22
    assert [name for name, fresh in found.items() if not fresh] == []
