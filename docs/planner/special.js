// Special functions and quadrature for the planner, in plain JavaScript: erfc to 1e-13, ln Γ, Gauss–Legendre.
"use strict";

const special = (() => {
  const ROOT_PI = Math.sqrt(Math.PI);

  // e^{x²}·erfc(x). Below 2 by the series of erf, which only adds; above by a continued fraction.
  function erfcx(x) {
    if (x < 0) return 2 * Math.exp(x * x) - erfcx(-x);
    if (x < 2) {
      let term = x, sum = x;
      for (let n = 1; Math.abs(term) > 1e-18 * sum; n++) {
        term *= (2 * x * x) / (2 * n + 1);
        sum += term;
      }
      return Math.exp(x * x) - (2 / ROOT_PI) * sum;
    }
    let tail = 0;
    for (let n = 120; n > 0; n--) tail = n / 2 / (x + tail);
    return 1 / (ROOT_PI * (x + tail));
  }

  const erfc = (x) => Math.exp(-x * x) * erfcx(x);
  const normalTail = (x) => erfc(x / Math.SQRT2) / 2;

  const LANCZOS = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];

  // ln Γ(x), x > 0
  function lgamma(x) {
    if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - lgamma(1 - x);
    const y = x - 1, t = y + 7.5;
    let sum = LANCZOS[0];
    for (let i = 1; i < 9; i++) sum += LANCZOS[i] / (y + i);
    return 0.5 * Math.log(2 * Math.PI) + (y + 0.5) * Math.log(t) - t + Math.log(sum);
  }

  const NODES = 20;
  const [POINTS, WEIGHTS] = gaussLegendre(NODES);

  function gaussLegendre(n) {
    const points = [], weights = [];
    for (let i = 0; i < n; i++) {
      let x = Math.cos((Math.PI * (i + 0.75)) / (n + 0.5)), slope = 1;
      for (let step = 0; step < 50; step++) {
        let before = 1, now = x;
        for (let k = 2; k <= n; k++) [before, now] = [now, ((2 * k - 1) * x * now - (k - 1) * before) / k];
        slope = (n * (x * now - before)) / (x * x - 1);
        const move = now / slope;
        x -= move;
        if (Math.abs(move) < 1e-16) break;
      }
      points.push(x);
      weights.push(2 / ((1 - x * x) * slope * slope));
    }
    return [points, weights];
  }

  // ∫ f over [low, high], in equal panels
  function integrate(f, low, high, panels = 16) {
    const half = (high - low) / panels / 2;
    let sum = 0;
    for (let p = 0; p < panels; p++) {
      const middle = low + (2 * p + 1) * half;
      for (let i = 0; i < NODES; i++) sum += WEIGHTS[i] * f(middle + half * POINTS[i]);
    }
    return sum * half;
  }

  // The root of an increasing function in [low, high].
  function bisect(f, low, high, halvings = 200) {
    for (let i = 0; i < halvings; i++) {
      const middle = (low + high) / 2;
      if (!(low < middle && middle < high)) break;
      if (f(middle) > 0) high = middle;
      else low = middle;
    }
    return low;
  }

  // Mean and quantiles of a law on [0, end] with density ∝ e^{logDensity}, which has one peak.
  function radialLaw(logDensity, end, scale) {
    const reach = Math.min(end, 1e300);
    let peak = 0, top = -Infinity;
    let step = Math.min(scale, reach / 2);
    // the peak, by widening and then by ternary search
    let far = step;
    while (far < reach && logDensity(far * 2) > logDensity(far)) far *= 2;
    let a = 0, b = Math.min(far * 2, reach);
    for (let i = 0; i < 100; i++) {
      const x = a + (b - a) / 3, y = b - (b - a) / 3;
      if (logDensity(x) < logDensity(y)) a = x;
      else b = y;
    }
    peak = (a + b) / 2;
    top = logDensity(peak);
    const negligible = (t) => logDensity(t) - top + 45;
    let high = Math.max(peak, step);
    while (high < reach && negligible(high) > 0) high *= 2;
    high = Math.min(high, reach);
    if (negligible(high) < 0) high = bisect((t) => -negligible(t), peak, high, 60);
    const low = peak > 0 && negligible(1e-300) < 0 ? bisect(negligible, 0, peak, 60) : 0;
    const panels = 24, width = (high - low) / panels;
    const density = (t) => Math.exp(logDensity(t) - top);
    const masses = [];
    let mass = 0, moment = 0;
    for (let p = 0; p < panels; p++) {
      const from = low + p * width;
      masses.push(integrate(density, from, from + width, 1));
      mass += masses[p];
      moment += integrate((t) => t * density(t), from, from + width, 1);
    }
    const quantile = (share) => {
      let left = share * mass, p = 0;
      while (p < panels - 1 && left > masses[p]) left -= masses[p++];
      const from = low + p * width;
      return bisect((t) => integrate(density, from, t, 1) - left, from, from + width, 60);
    };
    return { mean: moment / mass, quantile };
  }

  return { erfcx, erfc, normalTail, lgamma, integrate, bisect, radialLaw };
})();

if (typeof module !== "undefined") module.exports = special;
