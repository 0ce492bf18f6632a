// The loss of ℓ2-Laplace noise in R^d, d ≥ 2, for a shift of a noise scales. Mirrors dpmanifolds.privacy.l2_laplace.
"use strict";

const l2Laplace = (() => {
  const { normalTail, integrate } = typeof require !== "undefined" ? require("./special.js") : special;
  const LEAST_SHIFT = 1e-6, MOST_DIMENSIONS = 1e6;

  // K₁(z)/K₀(z), with K_ν(z) = ∫ e^{−z·cosh t}·cosh νt dt over t ≥ 0, cut where e^{−45} is left
  function firstRatio(z) {
    const end = Math.acosh(1 + 45 / z);
    const weight = (t) => Math.exp(-2 * z * Math.sinh(t / 2) ** 2);
    return integrate((t) => weight(t) * Math.cosh(t), 0, end) / integrate(weight, 0, end);
  }

  // b = (d−1)/z·K_{ν+1}(z)/K_ν(z), ν = (d−2)/2, upwards by K_{ν+1}/K_ν = 2ν/z + K_{ν−1}/K_ν
  function besselPart(d, z) {
    let order = d % 2 ? 0.5 : 0, ratio = d % 2 ? 1 + 1 / z : firstRatio(z);
    while (order < (d - 2) / 2) ratio = (2 * ++order) / z + 1 / ratio;
    return ((d - 1) / z) * ratio;
  }

  // The loss is a·sin φ, and φ has the density ∝ e^{a·sin φ/2}·cos^{d−2}φ·(b + cos²φ) on [−π/2, π/2].
  function lossLaw(d, a) {
    const b = besselPart(d, a / 2), panels = Math.ceil(Math.sqrt(d + a) / 2) + 2;
    const density = (turn) => {
      const cosine = Math.cos(turn);
      return Math.exp((a * (Math.sin(turn) - 1)) / 2 + (d - 2) * Math.log(cosine)) * (b + cosine * cosine);
    };
    // ∫ of the density times a factor over [from, π/2]
    const above = (from, factor) => integrate((turn) => density(turn) * factor(turn), from, Math.PI / 2, panels);
    // the mass of both signs of φ, on φ ≥ 0
    const total = above(0, (turn) => 1 + Math.exp(-a * Math.sin(turn)));
    return { share: (from, factor) => above(from, factor) / total };
  }

  // δ(ε) = E(1 − e^{ε − a·sin φ})₊
  function delta(d, a, epsilon) {
    if (a <= epsilon) return 0;
    const from = Math.asin(epsilon / a);
    const rise = (turn) => 2 * a * Math.cos((turn + from) / 2) * Math.sin((turn - from) / 2);
    return lossLaw(d, a).share(from, (turn) => -Math.expm1(-rise(turn)));
  }

  // How far the noise is above μ-Gaussian-DP, in a logarithm: that is −2Φ⁻¹(P(loss < 0)) against μ. The supremum of
  // Φ⁻¹(P(loss ≥ t)) − Φ⁻¹(P(−loss ≥ t)) over t ≥ 0 is at t = 0, as on the line; tests hold it against that supremum.
  function excessOverMu(d, a, mu) {
    const law = lossLaw(d, a), tail = normalTail(mu / 2);
    if (mu < 2) return Math.log(law.share(0, (turn) => -Math.expm1(-a * Math.sin(turn)))) - Math.log(1 - 2 * tail);
    return Math.log(tail) - Math.log(law.share(0, (turn) => Math.exp(-a * Math.sin(turn))));
  }

  return { LEAST_SHIFT, MOST_DIMENSIONS, delta, excessOverMu };
})();

if (typeof module !== "undefined") module.exports = l2Laplace;
