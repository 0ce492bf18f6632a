// Budgets: what ε, μ or ρ a budget affords, and how it is cut into shares. Mirrors dpmanifolds.privacy.
"use strict";

const budgets = (() => {
  const { erfcx, normalTail, bisect, integrate } = typeof require !== "undefined" ? require("./special.js") : special;
  const noise = typeof require !== "undefined" ? require("./l2_laplace.js") : l2Laplace;
  const mills = (x) => Math.sqrt(Math.PI / 2) * erfcx(x / Math.SQRT2);

  // 1 − x·mills(x), from x = 3 on by a continued fraction that subtracts nothing
  function millsSlope(x) {
    if (x < 3) return 1 - x * mills(x);
    let tail = 0;
    for (let term = 60; term > 0; term--) tail = term / (x + tail);
    return tail / (x + tail);
  }

  // log δ_μ(ε) of μ-Gaussian-DP: δ = φ(t)·(R(t) − R(t + μ)), t = ε/μ − μ/2, R Mills' ratio.
  function logDeltaOfMu(mu, epsilon) {
    const t = epsilon / mu - mu / 2;
    const logDensity = (-t * t) / 2 - Math.log(2 * Math.PI) / 2;
    if (t < -5) return Math.log(normalTail(t) - Math.exp(logDensity) * mills(t + mu));
    const drop = mu >= 0.25 ? mills(t) - mills(t + mu) : integrate(millsSlope, t, t + mu, 1);
    return logDensity + Math.log(drop);
  }

  // The largest x ≤ 700 with excess(x) ≤ 0, for an excess that grows, in logarithms.
  function largest(excess) {
    let low = 1, high = 1;
    while (excess(low) > 0) if ((low /= 4) < 1e-18) return 0;
    while (excess(high) <= 0) {
      if (high === 700) return 700;
      high = Math.min(4 * high, 700);
    }
    return Math.exp(bisect((u) => excess(Math.exp(u)), Math.log(low), Math.log(high), 70));
  }

  const remembered = new Map();
  function remember(name, ...numbers) {
    const key = name + numbers.join();
    if (!remembered.has(key)) remembered.set(key, COMPUTED[name](...numbers));
    return remembered.get(key);
  }

  const totalVariation = (rho) => Math.min(Math.sqrt(-Math.expm1(-rho)), Math.sqrt(rho / 2));

  // log δ(ε) of ρ-zCDP by moments (Canonne, Kamath and Steinke 2020), at a good order
  function logDeltaByMoments(rho, epsilon) {
    let alpha = Math.max((epsilon + rho) / (2 * rho), 1 + 1e-6);
    for (let i = 0; i < 12; i++) {
      const slope = (2 * alpha - 1) * rho - epsilon + Math.log1p(-1 / alpha);
      const next = alpha - slope / (2 * rho + 1 / (alpha * (alpha - 1)));
      alpha = Math.max(next, 1 + Math.max(1e-3 * (alpha - 1), 1e-9));
    }
    const bound = (alpha - 1) * (alpha * rho - epsilon + Math.log1p(-1 / alpha)) - Math.log(alpha);
    return Math.min(bound, Math.log(Math.min(totalVariation(rho), 1)), 0);
  }

  // The same, or the chord in e^ε from ε = 0, where that is lower; it never is where δ is far below its start.
  function logDeltaOfZcdp(rho, epsilon) {
    const moments = logDeltaByMoments(rho, epsilon), start = Math.min(totalVariation(rho), 1);
    if (moments < Math.log(start) - 7) return moments;
    let best = -Infinity, rise = 0;
    const from = Math.log(Math.sqrt(rho)) - 9, to = Math.log(Math.min(4 * rho + 10 * Math.sqrt(rho), 690));
    const slope = (u) => (start - Math.exp(logDeltaByMoments(rho, Math.exp(u)))) / Math.expm1(Math.exp(u));
    let place = from;
    for (let i = 0; i <= 200; i++) {
      const u = from + ((to - from) * i) / 200;
      if (slope(u) > best) [best, place] = [slope(u), u];
    }
    let a = place - (to - from) / 200, b = place + (to - from) / 200;
    for (let i = 0; i < 60; i++) {
      const x = a + (b - a) / 3, y = b - (b - a) / 3;
      if (slope(x) > slope(y)) b = y;
      else a = x;
    }
    [best, rise] = [slope((a + b) / 2), Math.expm1(Math.exp((a + b) / 2))];
    const growth = Math.expm1(Math.min(epsilon, 700));
    return growth < rise ? Math.log(Math.max(start - best * growth, 1e-300)) : moments;
  }

  const COMPUTED = {
    mu: (epsilon, delta) => largest((mu) => logDeltaOfMu(mu, epsilon) - Math.log(delta)),
    rho: (epsilon, delta) => largest((rho) => logDeltaOfZcdp(rho, epsilon) - Math.log(delta)),
    shiftOfPoint: (d, epsilon, delta) => largest((a) => Math.log(noise.delta(d, a, epsilon)) - Math.log(delta)),
    shiftOfMu: (d, mu) => largest((a) => noise.excessOverMu(d, a, mu)),
  };

  // μ*(ε, δ): the largest μ whose Gaussian is (ε, δ)-DP
  const muFor = (epsilon, delta) => remember("mu", epsilon, delta);

  // Each gives the number that a kind of noise may spend, or null where the budget cannot be kept so.
  function affordableEpsilon(budget, onTheLine) {
    if (budget.kind === "pure") return budget.epsilon;
    if (budget.kind === "approx") {
      const { epsilon, delta } = budget;
      if (onTheLine) return epsilon - 2 * Math.log1p(-delta);
      return epsilon + Math.log1p(delta * Math.exp(-epsilon)) - Math.log1p(-delta);
    }
    if (budget.kind === "gaussian") {
      const p = normalTail(budget.mu / 2);
      if (onTheLine) return -2 * Math.log(2 * p);
      return Math.log1p(-p) - Math.log(p);
    }
    if (onTheLine) return largest((epsilon) => epsilon + Math.expm1(-epsilon) - budget.rho);
    return largest((epsilon) => epsilon * Math.tanh(epsilon / 2) - budget.rho);
  }

  // The largest Δ/σ of ℓ2-Laplace noise in R^d: that of noise on the line, or of its own profile where it affords more.
  function affordableShift(budget, d) {
    const onTheLine = affordableEpsilon(budget, true);
    if (budget.kind === "pure" || d === 1 || d > noise.MOST_DIMENSIONS) return onTheLine;
    const { kind, epsilon, delta } = budget;
    const own = kind === "approx"
      ? remember("shiftOfPoint", d, epsilon, delta)
      : remember("shiftOfMu", d, affordableMu(budget));
    return own < noise.LEAST_SHIFT ? onTheLine : Math.max(onTheLine, own);
  }

  function affordableMu(budget) {
    if (budget.kind === "gaussian") return budget.mu;
    if (budget.kind === "approx") return muFor(budget.epsilon, budget.delta);
    return budget.kind === "zcdp" ? Math.sqrt(2 * budget.rho) : null;
  }

  function affordableRho(budget) {
    if (budget.kind === "zcdp") return budget.rho;
    return budget.kind === "approx" ? remember("rho", budget.epsilon, budget.delta) : null;
  }

  // The number of a budget that is sought or drawn along: ε, μ or ρ.
  const FIELD = { pure: "epsilon", approx: "epsilon", gaussian: "mu", zcdp: "rho" };
  const LETTER = { pure: "ε", approx: "ε", gaussian: "μ", zcdp: "ρ" };
  const numberOf = (budget) => budget[FIELD[budget.kind]];
  const withNumber = (budget, x) => ({ ...budget, [FIELD[budget.kind]]: x });

  // Ways to cut a budget by shares that sum to 1, as dpmanifolds.split.
  function split(budget, shares) {
    if (budget.kind === "approx") {
      return [
        split({ kind: "pure", epsilon: affordableEpsilon(budget, false) }, shares)[0],
        split({ kind: "gaussian", mu: affordableMu(budget) }, shares)[0],
      ];
    }
    const power = budget.kind === "gaussian" ? 0.5 : 1;
    return [shares.map((share) => withNumber(budget, numberOf(budget) * share ** power))];
  }

  return { LETTER, logDeltaOfMu, muFor, affordableEpsilon, affordableShift, affordableMu, affordableRho,
    numberOf, withNumber, split };
})();

if (typeof module !== "undefined") module.exports = budgets;
