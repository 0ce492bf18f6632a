// Expected error of a private mean, from public facts alone. Mirrors dpmanifolds.planning; tests compare the two.
"use strict";

const planner = (() => {
  const inNode = typeof require !== "undefined";
  const { erfcx, lgamma, integrate, bisect, radialLaw } = inNode ? require("./special.js") : special;
  const { space } = inNode ? require("./spaces.js") : spaces;
  const money = inNode ? require("./budgets.js") : budgets;
  const PRECISION = 2 ** -52, TARGET = 1e-10, BLOCK = 32768;
  const MECHANISMS = [
    ["wrapped-laplace", "rounded"],
    ["wrapped-gaussian", "rounded"],
    ["wrapped-laplace", "lattice"],
    ["wrapped-gaussian", "lattice"],
    ["riemannian-laplace", "idealized"],
    ["riemannian-gaussian", "idealized"],
    ["k-norm-gradient", "idealized"],
  ];

  // How close to the true mean the library's solver is certain to come (statistics.solver_error); Infinity: refused.
  function solverTolerance(where, radius, n) {
    const block = Math.min(n, BLOCK);
    const summation = (block + Math.ceil(n / block)) * PRECISION * 2 * radius;
    const needed = 2 * TARGET + 4 * PRECISION * (where.rounding(radius) + where.solverRounding) + summation;
    if (where.hadamard) return 2 * needed;
    const step = 1e-6 / Math.sqrt(Math.max(Math.abs(where.lower), Math.abs(where.upper)) || 1);
    let convexity = 1;
    if (where.upper > 0) {
      const root = Math.sqrt(where.upper), far = root * 2 * (radius + step);
      if (far >= Math.PI) return Infinity;
      const slope = (far - Math.sin(far) * Math.cos(far)) / Math.sin(far) ** 2;
      convexity = (root * radius) / Math.tan(root * radius) - 2 * root * step * slope;
    }
    const half = convexity > 0 ? needed / convexity : Infinity;
    return half <= step ? 2 * half : Infinity;
  }

  // The largest diameter of log_x(ball) over x in the ball, on the unit sphere (Theorem S2).
  function logImageDiameter(angle) {
    const tangent = Math.tan(angle);
    if (tangent < 1e-6) return 2 * angle * (1 + angle * angle);
    const excess = (x) => x * x + ((x * Math.atan(x * tangent)) / tangent) * (1 + (x * tangent) ** 2) - 1;
    const x = bisect(excess, 0, 1);
    return 4 * Math.atan(x * tangent) * Math.sqrt((1 - x) * (1 + x));
  }

  // How far the mean moves when one record is replaced: 2·tan(√κr)/(√κn), or 2r/n where no curvature is positive.
  function meanSensitivity(where, radius, n) {
    const root = Math.sqrt(Math.max(where.upper, 0));
    const flat = (2 * radius) / n;
    const bound = root === 0 ? flat : Math.max(flat, (2 * Math.tan(root * radius)) / root / n);
    return Math.min(bound, 2 * radius);
  }

  // How far a mean moves: by sums of integers, 2r/n whatever the space is; around the Fréchet mean itself, with what the
  // solver and rounding add, or why that is not known.
  function facts(where, radius, n) {
    if (!(radius < where.injectivity)) {
      return { refusal: `The radius must be below ${short(where.injectivity, 6)} on ${where.label}, where the farthest ` +
        "points from a centre lie. Choose a smaller ball; records outside are clipped to it." };
    }
    return { where, radius, n, atCenter: (2 * radius) / n, ...aroundMean(where, radius, n) };
  }

  function aroundMean(where, radius, n) {
    if (!(radius < where.maxRadius)) {
      return { unknown: `the mean need not be unique from radius ${short(where.maxRadius, 6)} on` };
    }
    const tolerance = solverTolerance(where, radius, n), rounding = 4 * PRECISION * where.rounding(radius);
    if (!(tolerance < radius)) return { unknown: "in double precision no mean is certain enough" };
    const angle = Math.sqrt(Math.max(where.upper, 0)) * radius, moved = meanSensitivity(where, radius, n);
    const gradient = angle > 0 ? Math.max(2 * radius, (logImageDiameter(angle) * radius) / angle) / n : (2 * radius) / n;
    return { inDistance: moved + 2 * tolerance + 2 * rounding, ofGradient: gradient + 2 * rounding };
  }

  const gaussianMean = (d) => Math.SQRT2 * Math.exp(lgamma((d + 1) / 2) - lgamma(d / 2));

  // E√(y₁² + … + y_d²) for independent Laplace y_i: an integral of erfcx.
  const lattices = new Map();
  function meanNormOfLaplaces(d) {
    if (!lattices.has(d)) {
      const f = (u) => -Math.expm1(d * Math.log(Math.min(Math.sqrt(Math.PI) * u * erfcx(u), 1)));
      const knee = Math.sqrt(d);
      const far = (v) => (f(knee / v) * knee) / (v * v);
      lattices.set(d, (2 / Math.sqrt(Math.PI)) * (integrate(f, 0, knee, 32) + integrate(far, 1e-9, 1, 32)));
    }
    return lattices.get(d);
  }

  // How much farther noise of one size moves points at the edge of the ball, where curvature is negative.
  function edgeFactor(where, radius) {
    if (where.lower >= 0 || where.dim === 1) return 1;
    const reach = Math.sqrt(-where.lower) * radius, power = where.dim - 2;
    const stretch = reach > 1e-6 ? Math.sinh(reach) / reach : 1;
    const end = Math.min(Math.PI / 2, 14 / Math.sqrt(power + 1));
    const weight = (t) => Math.cos(t) ** power;
    const value = (t) => weight(t) * Math.hypot(Math.sin(t), stretch * Math.cos(t));
    return Math.max(integrate(value, 0, end, 8) / integrate(weight, 0, end, 8), 1);
  }

  // One mechanism: {sigma, mean, law} or {reason}. `law` gives quantiles when they are asked for.
  function mechanism(name, numerics, f, budget) {
    const { where, radius } = f, d = where.dim;
    if (numerics === "idealized" && f.unknown) return { reason: f.unknown };
    const kernel = name.endsWith("gaussian") ? (s) => (t) => (-t * t) / (2 * s * s) : (s) => (t) => -t / s;
    const flatLaw = (sigma) => {
      const log = kernel(sigma);
      return () => radialLaw((t) => log(t) + (d > 1 ? (d - 1) * Math.log(t) : 0), Infinity, sigma);
    };
    if (name === "wrapped-gaussian" || (name === "riemannian-gaussian" && where.flat)) {
      const mu = money.affordableMu(budget);
      if (!mu) return { reason: "Gaussian noise keeps no pure ε" };
      const sigma = (numerics === "idealized" ? f.inDistance : f.atCenter) / mu;
      return { sigma, mean: sigma * gaussianMean(d), law: flatLaw(sigma) };
    }
    if (name === "riemannian-gaussian") {
      const known = where.family === "sphere" || where.family === "hyperbolic";
      return { reason: known ? "needs quadrature: plan it in Python with numerics=\"all\"" : "no bound is known here" };
    }
    const onLattice = numerics === "lattice";
    const epsilon = money.affordableEpsilon(budget, name !== "k-norm-gradient");
    if (!(epsilon > 0)) return { reason: "no such noise keeps this budget" };
    if (name === "wrapped-laplace") {
      const sigma = onLattice ? (f.atCenter * Math.sqrt(d)) / epsilon : f.atCenter / money.affordableShift(budget, d);
      if (onLattice && d > 1) return { sigma, mean: sigma * meanNormOfLaplaces(d), law: null };
      return { sigma, mean: sigma * d, law: flatLaw(sigma) };
    }
    if (!where.volume) return { reason: "no simple formula: plan it in Python with numerics=\"all\"" };
    const inBall = name === "k-norm-gradient";
    const sigma = (inBall ? 2 * f.ofGradient : f.inDistance) / epsilon;
    if (!inBall && where.family === "hyperbolic" && (d - 1) * sigma >= 1) {
      return { reason: "the law does not exist at this scale" };
    }
    if (!inBall && where.flat) return { sigma, mean: sigma * d, law: flatLaw(sigma) };
    const log = (t) => -t / sigma + where.volume(t);
    const law = radialLaw(log, inBall ? radius : where.end, sigma);
    return { sigma, mean: law.mean, law: () => law };
  }

  // Every mechanism within a budget, the best safe one marked. With `full`, 90 % quantiles too.
  function rows(f, budget, full = true) {
    const found = MECHANISMS.map(([name, numerics]) => {
      const one = mechanism(name, numerics, f, budget);
      return { name, numerics, key: `${name} (${numerics})`, ...one, available: one.mean !== undefined };
    });
    const edge = full ? edgeFactor(f.where, f.radius) : 1;
    for (const row of found) {
      if (!row.available || !full) continue;
      row.radius90 = row.law ? row.law().quantile(0.9) : null;
      const wrapped = row.name.startsWith("wrapped");
      row.atEdge = wrapped ? Math.max(row.mean, Math.min(row.mean * edge, 2 * f.radius)) : row.mean;
    }
    const safe = found.filter((row) => row.available && row.numerics !== "idealized");
    const best = safe.reduce((a, b) => (a && a.mean <= b.mean ? a : b), null);
    if (best) best.chosen = true;
    return found;
  }

  // The row that counts: the one named, or the best safe one; null where it is not available.
  function pick(found, wanted) {
    const row = found.find((one) => (wanted === "auto" ? one.chosen : one.key === wanted));
    return row && row.available ? row : null;
  }

  // The smallest budget of the same kind that brings the expected error down to a target; null where none does.
  function budgetFor(f, budget, wanted, target) {
    const tooLarge = (u) => {
      const row = pick(rows(f, money.withNumber(budget, Math.exp(-u)), false), wanted);
      return row ? row.mean - target : 1;
    };
    const least = -Math.log(700), most = Math.log(2 ** 40);
    if (!pick(rows(f, money.withNumber(budget, 1), false), wanted) || tooLarge(least) > 0) return null;
    return money.withNumber(budget, Math.exp(-bisect(tooLarge, least, most, 60)));
  }

  // Several releases that share a budget: the cut whose errors sum to less, and each part with its row.
  function shared(f, budget, weights, wanted) {
    const total = weights.reduce((a, b) => a + b, 0);
    const ways = money.split(budget, weights.map((w) => w / total)).map((parts, way) => {
      const releases = parts.map((part) => ({ part, row: pick(rows(f, part, false), wanted) }));
      return { way, releases, sum: releases.reduce((a, one) => a + (one.row ? one.row.mean : Infinity), 0) };
    });
    return ways.reduce((a, b) => (b.sum < a.sum ? b : a));
  }

  // What the mean of n records errs by even without privacy, at a public spread (the root mean square distance of records
  // to their mean), the noise over it, and the number of records at which both are equal; in the words of the plan.
  function sampling(n, spread, error) {
    const without = spread / Math.sqrt(n), ratio = error / without;
    const equal = Math.max(1, Math.ceil(n * ratio ** 2 * (1 - 1e-9)));
    const words = `Sampling error: with ${n} records at a spread of ${short(spread)}, ${short(without)} even without privacy. ` +
      `The noise errs as much at n = ${equal}, and less beyond.`;
    return { without, ratio, equal, words };
  }

  // Four significant digits, in plain notation where that is readable.
  function short(x, digits = 4) {
    if (!Number.isFinite(x)) return "∞";
    if (x !== 0 && (Math.abs(x) < 1e-4 || Math.abs(x) >= 1e6)) {
      return x.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
    }
    return String(Number(x.toPrecision(digits)));
  }

  return { MECHANISMS, space, facts, rows, pick, budgetFor, shared, sampling, short, meanSensitivity, edgeFactor, money };
})();

if (typeof module !== "undefined") module.exports = planner;
