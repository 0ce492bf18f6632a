// The same plan as lines to paste: Python and the command line.
"use strict";

const snippets = (() => {
  const { money } = typeof require !== "undefined" ? require("./planner.js") : planner;
  // what is printed is read back to the same number
  const exact = String;

  // The public centre as Python, on the command line and in words: the one that the page was opened with (`given`, by the
  // space that it is of), or the space's own.
  function center(where, given) {
    const [a, b] = where.sizes;
    const natural = { euclidean: ["np.zeros(" + a + ")", "origin"], hyperbolic: ["space.origin", "origin"],
      spd: [`np.eye(${a})`, "identity"], rotations: [`np.eye(${a})`, "identity"] }[where.family];
    const own = given && given.of === `${where.family}:${where.sizes.join()}` ? given.numbers : null;
    if (!own && natural) return { python: natural[0], line: natural[1], words: `the ${natural[1]}` };
    const shape = { spd: [a, a], rotations: [a, a], grassmann: [a, b], shapes: [a, 2] }[where.family];
    if (where.family === "spd" && own.every((x, i) => x === (i % (a + 1) === 0 ? own[0] : 0))) {
      return own[0] === 1 ? center(where, null)
        : { python: `${exact(own[0])} * np.eye(${a})`, line: `"${exact(own[0])}*I"`, words: `${exact(own[0])} times the identity` };
    }
    const numbers = own || exampleCenter(where), line = numbers.map(exact).join();
    const array = `np.array([${numbers.map(exact).join(", ")}])${shape ? `.reshape(${shape.join(", ")})` : ""}`;
    const python = where.family === "shapes" ? `space.from_landmarks(${array})` : array;
    return { python, line, words: own ? "as the plan was given" : "an example, to be replaced by your public one" };
  }

  function exampleCenter(where) {
    const [a, b] = where.sizes;
    if (where.family === "sphere") return [...Array(a).fill(0), 1];
    if (where.family === "grassmann") return Array.from({ length: a * b }, (_, i) => (i % b === Math.floor(i / b) ? 1 : 0));
    return Array.from({ length: 2 * a }, (_, i) => {
      const turn = (2 * Math.PI * Math.floor(i / 2)) / a;
      return Number((i % 2 ? Math.sin(turn) : Math.cos(turn)).toFixed(6));
    });
  }

  function budgetInPython(budget) {
    if (budget.kind === "pure") return `dpm.PureDP(${exact(budget.epsilon)})`;
    if (budget.kind === "approx") return `dpm.ApproxDP(${exact(budget.epsilon)}, ${exact(budget.delta)})`;
    return budget.kind === "gaussian" ? `dpm.GaussianDP(${exact(budget.mu)})` : `dpm.ZeroConcentratedDP(${exact(budget.rho)})`;
  }

  function budgetOnTheLine(budget) {
    const number = exact(money.numberOf(budget));
    if (budget.kind === "approx") return `--epsilon ${number} --delta ${exact(budget.delta)}`;
    return { pure: `--epsilon ${number}`, gaussian: `--mu ${number}`, zcdp: `--rho ${number}` }[budget.kind];
  }

  // state: {where, radius, n, budget, wanted, weights, way}
  function python(state) {
    const { where, wanted, weights } = state;
    const named = wanted === "auto" ? "" : ", " + wanted.replace(/^(.*) \((.*)\)$/, 'mechanism="$1", numerics="$2"');
    const lines = ["import numpy as np", "import dpmanifolds as dpm", "", `space = dpm.${where.label}`];
    lines.push(`ball = dpm.Ball(space, ${center(where, state.center).python}, radius=${exact(state.radius)})  # your public centre, never from the records`);
    lines.push(`budget = ${budgetInPython(state.budget)}`);
    const all = state.idealized ? ', numerics="all"' : "";
    const spread = state.spread ? `, spread=${exact(state.spread)}` : "";
    lines.push(`print(dpm.plan(ball, n=${state.n}, budgets=budget${all}${spread}))`);
    let part = "budget";
    if (weights.length > 1) {
      lines.push(`weights = np.array([${weights.map(exact).join(", ")}])`);
      lines.push(`parts = dpm.split(budget, weights / weights.sum())[${state.way}]`);
      part = "parts[0]";
    }
    lines.push(`release = dpm.private_mean(records, ball, ${part}${named})`);
    return lines.join("\n");
  }

  function command(state) {
    const { where } = state;
    const metric = where.family === "spd" && where.metric !== "affine-invariant" ? ` --metric ${where.metric}` : "";
    const place = `--manifold ${where.family}:${where.sizes.join()}${metric} --center ${center(where, state.center).line} ` +
      `--radius ${exact(state.radius)}`;
    const budget = budgetOnTheLine(state.budget);
    const equal = state.weights.length > 1 && state.weights.every((w) => w === state.weights[0]);
    const lines = [`dpmanifolds plan ${place} --n ${state.n} ${budget}${equal ? ` --releases ${state.weights.length}` : ""}` +
      (state.idealized ? " --numerics all" : "") + (state.spread ? ` --spread ${exact(state.spread)}` : "")];
    const named = state.wanted === "auto" ? "" : " " + state.wanted.replace(/^(.*) \((.*)\)$/, "--mechanism $1 --numerics $2");
    lines.push(`dpmanifolds mean records.npy ${place} ${budgetOnTheLine(state.part || state.budget)}${named}`);
    return lines.join("\n");
  }

  return { python, command, center };
})();

if (typeof module !== "undefined") module.exports = snippets;
