// Expected error against the budget, on logarithmic axes, as SVG.
"use strict";

const chart = (() => {
  const DASHES = { rounded: "", lattice: "2 4", idealized: "9 4" };
  const MARGIN = { left: 60, right: 14, top: 28, bottom: 40 }, POINTS = 41;

  const style = (index) => `stroke:var(--c${index});stroke-dasharray:${DASHES[planner.MECHANISMS[index][1]] || "none"}`;

  function ticks(low, high) {
    const found = [];
    for (let p = Math.floor(low); p <= Math.ceil(high); p++) {
      for (const factor of high - low < 4 ? [1, 3] : [1]) {
        const u = p + Math.log10(factor);
        if (u >= low - 1e-9 && u <= high + 1e-9) found.push([u, planner.short(factor * 10 ** p, 2)]);
      }
    }
    return found;
  }

  // view: {facts, budget, wanted, unit, range: [low, high] of log10 of the budget}; onDrag(number) sets the budget.
  function draw(holder, view, onDrag) {
    const { facts, budget, wanted, range } = view, { money, short } = planner;
    const width = Math.max(holder.clientWidth, 260), height = Math.max(Math.min(width * 0.62, 380), 250);
    const curves = planner.MECHANISMS.map(() => []);
    for (let i = 0; i < POINTS; i++) {
      const u = range[0] + ((range[1] - range[0]) * i) / (POINTS - 1);
      planner.rows(facts, money.withNumber(budget, 10 ** u), false).forEach((row, k) => {
        if (row.available) curves[k].push([u, Math.log10(row.mean)]);
      });
    }
    const heights = curves.flat().map((point) => point[1]);
    const found = planner.rows(facts, budget, false), taken = planner.pick(found, wanted);
    // up to the radius, or to the choice where that is beyond it
    let top = Math.max(Math.log10(facts.radius), taken ? Math.log10(taken.mean) : -Infinity) + 0.35;
    // down to the radius, where that is not far below everything else
    const useless = Math.log10(facts.radius), least = Math.min(...heights, top - 1);
    const bottom = (least - useless < 1 ? Math.min(least, useless) : least) - 0.1;
    top = Math.max(Math.min(top, Math.max(...heights) + 0.2), bottom + 0.5);
    const x = (u) => MARGIN.left + ((u - range[0]) / (range[1] - range[0])) * (width - MARGIN.left - MARGIN.right);
    const y = (v) => MARGIN.top + ((top - v) / (top - bottom)) * (height - MARGIN.top - MARGIN.bottom);
    const parts = [];
    const line = (cls, x1, y1, x2, y2) => parts.push(`<line class="${cls}" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`);
    for (const [u, text] of ticks(...range)) {
      line("grid", x(u), MARGIN.top, x(u), height - MARGIN.bottom);
      parts.push(`<text x="${x(u)}" y="${height - MARGIN.bottom + 18}" text-anchor="middle">${text}</text>`);
    }
    for (const [v, text] of ticks(bottom, top)) {
      line("grid", MARGIN.left, y(v), width - MARGIN.right, y(v));
      parts.push(`<text x="${MARGIN.left - 7}" y="${y(v) + 4}" text-anchor="end">${text}</text>`);
    }
    parts.push(`<text x="${(width + MARGIN.left) / 2}" y="${height - 4}" text-anchor="middle">${money.LETTER[budget.kind]}</text>`);
    // lying above the axis: standing beside it, it is longer than the axis is on a phone
    parts.push(`<text x="2" y="14">expected error (${view.unit})</text>`);
    if (useless < top && useless > bottom) line("useless", MARGIN.left, y(useless), width - MARGIN.right, y(useless));
    parts.push(`<clipPath id="inside"><rect x="${MARGIN.left}" y="${MARGIN.top}" width="${width - MARGIN.left - MARGIN.right}" height="${height - MARGIN.top - MARGIN.bottom}"/></clipPath><g clip-path="url(#inside)">`);
    curves.forEach((points, k) => {
      if (!points.length) return;
      const path = points.map(([u, v]) => `${x(u).toFixed(1)},${y(v).toFixed(1)}`).join(" ");
      parts.push(`<polyline class="curve${found[k] === taken ? " taken" : ""}" style="${style(k)}" points="${path}"/>`);
    });
    parts.push("</g>");
    const number = money.numberOf(budget), here = Math.log10(number);
    let told = "no mechanism keeps this budget";
    if (taken) {
      const at = y(Math.max(Math.min(Math.log10(taken.mean), top), bottom)), across = Math.max(range[0], Math.min(range[1], here));
      parts.push(`<circle class="mark" style="stroke:var(--c${found.indexOf(taken)})" cx="${x(across)}" cy="${at}" r="7"/>`);
      told = `at ${money.LETTER[budget.kind]} = ${short(number)} the expected error is ${short(taken.mean)} with ${taken.key}`;
    }
    holder.innerHTML = `<svg viewBox="0 0 ${width} ${height}" height="${height}" role="img" aria-label="Expected error against the budget: ${told}.">${parts.join("")}</svg>`;
    const svg = holder.firstChild;
    const follow = (event) => {
      const box = svg.getBoundingClientRect();
      const share = ((event.clientX - box.left) * (width / box.width) - MARGIN.left) / (width - MARGIN.left - MARGIN.right);
      onDrag(10 ** (range[0] + Math.max(0, Math.min(1, share)) * (range[1] - range[0])));
    };
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointermove", (event) => event.buttons && follow(event));
  }

  return { draw, style };
})();
