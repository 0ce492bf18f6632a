// The same plan as lines to paste: Python and the command line.
"use strict";

const snippets = (() => {
  const { short, money } = typeof require !== "undefined" ? require("./planner.js") : planner;
  const exact = (x) => short(x, 12);

  function center(where) {
    const [a, b] = where.sizes;
    return {
      euclidean: [`np.zeros(${a})`, "origin"],
      sphere: [`np.eye(${a + 1})[-1]`, a < 12 ? [...Array(a).fill(0), 1].join() : "center.csv"],
      hyperbolic: ["space.origin", "origin"],
      spd: [`np.eye(${a})`, "identity"],
      shapes: [`space.from_landmarks(template)`, "template.csv"],
      rotations: [`np.eye(${a})`, "identity"],
      grassmann: [`np.eye(${a}, ${b})`, "center.npy"],
    }[where.family];
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
    if (where.family === "shapes") {
      const side = where.sizes[0];
      lines.push(`turn = 2 * np.pi * np.arange(${side}) / ${side}`);
      lines.push("template = np.stack([np.cos(turn), np.sin(turn)], axis=-1)  # your public template goes here");
    }
    lines.push(`ball = dpm.Ball(space, ${center(where)[0]}, radius=${exact(state.radius)})  # your public centre, never from the records`);
    lines.push(`budget = ${budgetInPython(state.budget)}`);
    const all = state.idealized ? ', numerics="all"' : "";
    lines.push(`print(dpm.plan(ball, n=${state.n}, budgets=budget${all}))`);
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
    const place = `--manifold ${where.family}:${where.sizes.join()}${metric} --center ${center(where)[1]} ` +
      `--radius ${exact(state.radius)}`;
    const budget = budgetOnTheLine(state.budget);
    const equal = state.weights.length > 1 && state.weights.every((w) => w === state.weights[0]);
    const lines = [`dpmanifolds plan ${place} --n ${state.n} ${budget}${equal ? ` --releases ${state.weights.length}` : ""}`];
    const named = state.wanted === "auto" ? "" : " " + state.wanted.replace(/^(.*) \((.*)\)$/, "--mechanism $1 --numerics $2");
    lines.push(`dpmanifolds mean records.npy ${place} ${budgetOnTheLine(state.part || state.budget)}${named}`);
    return lines.join("\n");
  }

  return { python, command };
})();

if (typeof module !== "undefined") module.exports = snippets;
