// Manifolds as the planner needs them: dimension, curvature, how volume grows around a point, and rounding.
"use strict";

const spaces = (() => {
  const logPower = (power, f) => (t) => (power === 0 ? 0 : power * Math.log(f(t)));

  // What sizes a family has, with the largest that the page offers, a radius to begin with, and the unit of its distances.
  const FAMILIES = {
    spd: { name: "Covariance matrices (SPD)", sizes: [["k", "Matrix size k", 1, 64, 3]], radius: 1.5, unit: "differences of logarithms", metrics: true },
    sphere: { name: "Directions, compositions (sphere)", sizes: [["d", "Dimension d", 1, 500, 2]], radius: 0.5, unit: "radians" },
    hyperbolic: { name: "Trees and hierarchies (hyperbolic)", sizes: [["d", "Dimension d", 1, 500, 2]], radius: 2, unit: "hyperbolic distance" },
    shapes: { name: "Landmark shapes (planar)", sizes: [["k", "Landmarks k", 3, 500, 12]], radius: 0.2, unit: "radians" },
    euclidean: { name: "Vectors (Euclidean)", sizes: [["d", "Dimension d", 1, 2000, 5]], radius: 1, unit: "units of the records" },
    rotations: { name: "Rotations SO(n)", sizes: [["n", "Matrix size n", 2, 32, 3]], radius: 0.5, unit: "radians" },
    grassmann: {
      name: "Subspaces (Grassmann)",
      sizes: [["n", "Ambient dimension n", 2, 64, 5], ["p", "Subspace dimension p", 1, 63, 2]],
      radius: 0.5, unit: "radians",
    },
  };
  // what logarithms by products report at most (manifolds._logarithms.largest_spread)
  const PRODUCT_SPREAD = 2 * ((1 + Math.sqrt(0.8)) / (1 - Math.sqrt(0.8))) ** 2 + 8;
  const METRICS = ["affine-invariant", "log-euclidean", "log-cholesky"];

  // One space: dim, curvature bounds, injectivity radius, the largest radius of a ball, and, where a ball's volume
  // depends on the radius through one simple factor, its logarithm `volume` on [0, end].
  function space(family, sizes, metric = METRICS[0]) {
    const [a, b] = sizes;
    const one = { family, sizes, metric, flat: false, lower: 0, upper: 0, injectivity: Infinity, end: Infinity };
    one.solverRounding = 0;
    if (family === "euclidean") {
      Object.assign(one, { dim: a, flat: true, label: `Euclidean(${a})`, rounding: (r) => 32 * r });
    } else if (family === "sphere") {
      const k = a > 1 ? 1 : 0;
      Object.assign(one, { dim: a, lower: k, upper: k, injectivity: Math.PI, end: Math.PI, label: `Sphere(${a})` });
      one.volume = logPower(a - 1, Math.sin);
      one.rounding = (r) => 16 * Math.sqrt(Math.max(a + 1, 4)) * (1 + (a > 1 ? 2 / Math.cos(r) : (2 * r) / Math.sin(2 * r)));
    } else if (family === "hyperbolic") {
      const k = a > 1 ? -1 : 0;
      Object.assign(one, { dim: a, lower: k, upper: k, flat: a === 1, label: `Hyperbolic(${a})` });
      one.volume = logPower(a - 1, Math.sinh);
      one.rounding = (r) => 16 * Math.sqrt(a + 1) * Math.exp(2 * r) * (1 + 2 * r);
    } else if (family === "spd") {
      const label = metric === METRICS[0] ? `SPD(${a})` : `SPD(${a}, "${metric}")`;
      Object.assign(one, { dim: (a * (a + 1)) / 2, label, flat: metric !== METRICS[0] || a === 1 });
      if (!one.flat) one.lower = -0.5;
      one.rounding = {
        "affine-invariant": (r) => 4 * a * a * Math.exp(3 * Math.SQRT2 * r),
        "log-euclidean": (r) => 4 * a * a * Math.exp(Math.SQRT2 * r) + 32 * r,
        "log-cholesky": (r) => a * choleskyCondition(a, r) + 32 * r,
      }[metric];
      if (metric === "log-euclidean" && a > 3 && a <= 64) one.solverRounding = 4 * a * a * PRODUCT_SPREAD;
    } else if (family === "shapes") {
      Object.assign(one, { dim: 2 * a - 4, lower: a > 3 ? 1 : 4, upper: 4, injectivity: Math.PI / 2, end: Math.PI / 2 });
      one.volume = (t) => (2 * a - 5) * Math.log(Math.sin(t)) + Math.log(Math.cos(t));
      one.label = `PlanarShapes(${a})`;
      one.rounding = (r) => 16 * Math.sqrt(a) * (1 + 2 * r);
    } else if (family === "rotations") {
      const bounds = { 2: [0, 0], 3: [0.25, 0.25] }[a] || [0, 0.5];
      Object.assign(one, { dim: (a * (a - 1)) / 2, lower: bounds[0], upper: bounds[1], injectivity: Math.PI });
      one.label = `SpecialOrthogonal(${a})`;
      one.rounding = (r) => 16 * a * (1 + 2 * r);
      if (a <= 3) Object.assign(one, { end: Math.PI, volume: logPower(a === 3 ? 2 : 0, (t) => Math.sin(t / 2)) });
    } else if (family === "grassmann") {
      const rank = Math.min(b, a - b), dim = b * (a - b);
      const bounds = dim === 1 ? [0, 0] : rank === 1 ? [1, 1] : [0, 2];
      Object.assign(one, { dim, lower: bounds[0], upper: bounds[1], injectivity: Math.PI / 2 });
      one.label = `Grassmann(${a}, ${b})`;
      one.rounding = (r) => 16 * a * (1 + 2 * r);
      if (rank === 1) Object.assign(one, { end: Math.PI / 2, volume: logPower(dim - 1, Math.sin) });
    }
    if (one.flat) one.volume = logPower(one.dim - 1, (t) => t);
    one.hadamard = one.injectivity === Infinity && one.upper <= 0;
    one.maxRadius = Math.min(one.injectivity, one.upper > 0 ? Math.PI / Math.sqrt(one.upper) : Infinity) / 2;
    return one;
  }

  // How badly a Cholesky factor within r of the identity can be conditioned, cubed as rounding needs it.
  function choleskyCondition(k, r) {
    const cells = 64;
    let worst = 0;
    for (let cell = 0; cell < cells; cell++) {
      const below = r * Math.sqrt(1 - (cell / cells) ** 2);
      let squares = 0, largest = 0;
      for (let j = 1; j <= k; j++) {
        const step = Math.exp((r * (cell + 1)) / cells / Math.sqrt(j));
        if (j === 1) largest = step;
        squares += step * step;
      }
      const stretch = Math.sqrt(squares), size = Math.hypot(below, stretch);
      let inverse = 0;
      for (let power = 0; power < k; power++) inverse += (below * largest) ** power;
      worst = Math.max(worst, (size * stretch * inverse) ** 2 * (1 + size));
    }
    return worst;
  }

  // What an error comes to in the units of those who use the space; empty where none is known. Quadratic forms (all
  // eigenvalues in the log-Euclidean metric) of matrices at distance d differ by factors of at most exp(d).
  function describe({ family, sizes, metric }, distance) {
    const three = (x) => Number(x.toPrecision(3));
    if (family === "spd" && metric !== "log-cholesky" && distance < 1) {
      return `no eigenvalue by more than ${three(100 * Math.expm1(distance))}\u00a0%`;
    }
    if (family === "shapes") return `${three(200 * Math.sin(Math.min(distance, Math.PI / 2) / 2))}\u00a0% of the size, as Procrustes distance`;
    const angle = family === "sphere" || family === "grassmann" || (family === "rotations" && sizes[0] <= 3);
    return angle ? `${three((180 * distance) / Math.PI)} degrees` : "";
  }

  return { FAMILIES, METRICS, space, describe };
})();

if (typeof module !== "undefined") module.exports = spaces;
