// The planner page: controls, and everything that follows from them.
"use strict";

(() => {
  const { money, short } = planner;
  const $ = (id) => document.getElementById(id);
  const state = {
    family: "spd", sizes: { spd: [3] }, metric: "affine-invariant", n: 500, radius: 1.5, center: null,
    kind: "pure", amount: 1, delta: 1e-6, mechanism: "auto", weights: [1], spread: null,
  };
  const RANGES = { pure: [-2, 1], approx: [-2, 1], gaussian: [-2, 1], zcdp: [-4, 1] };

  const sizes = () => (state.sizes[state.family] ||= spaces.FAMILIES[state.family].sizes.map((size) => size[4]));
  const where = () => planner.space(state.family, sizes(), state.metric);
  const budget = (kind = state.kind) => money.withNumber({ kind, delta: state.delta }, state.amount);
  const option = (value, text) => Object.assign(document.createElement("option"), { value, textContent: text });

  // A number field: valid input goes to `set` and everything follows; anything else is marked and changes nothing.
  function number(field, whole, low, high, set) {
    field.addEventListener("input", () => {
      const value = Number(field.value);
      const good = field.value !== "" && Number.isFinite(value) && value >= low && value <= high && (!whole || value % 1 === 0);
      field.setAttribute("aria-invalid", String(!good));
      if (good) set(value);
      if (good) update(field);
    });
  }

  function slider(field, set) {
    field.addEventListener("input", () => {
      set(10 ** Number(field.value));
      update(field);
    });
  }

  const rounded = (x, digits = 3) => Number(x.toPrecision(digits));

  function askForError(target) {
    const facts = planner.facts(where(), state.radius, state.n);
    const found = facts.refusal ? null : planner.budgetFor(facts, budget(), state.mechanism, target);
    $("error").setAttribute("aria-invalid", String(!found));
    $("error-help").textContent = found ? "Set it, and the budget follows."
      : "No budget brings the error down to this with these records and this noise. Use more records or a smaller ball.";
    if (found) state.amount = money.numberOf(found);
    return Boolean(found);
  }

  function fill() {
    for (const [key, family] of Object.entries(spaces.FAMILIES)) $("family").append(option(key, family.name));
    for (const metric of spaces.METRICS) $("metric").append(option(metric, metric));
    $("mechanism").append(option("auto", "smallest error, safe numerics"));
    for (const [name, numerics] of planner.MECHANISMS) $("mechanism").append(option(`${name} (${numerics})`, `${name} (${numerics})`));
    const select = (id, then) => $(id).addEventListener("change", () => {
      state[id] = $(id).value;
      if (then) then();
      update($(id));
    });
    select("family", () => {
      state.radius = spaces.FAMILIES[state.family].radius;
      sizeFields();
    });
    select("metric");
    select("kind");
    select("mechanism");
    number($("n"), true, 1, 1e9, (value) => (state.n = value));
    slider($("n-slider"), (value) => (state.n = Math.round(rounded(value, 2))));
    number($("radius"), false, 1e-9, 1e6, (value) => (state.radius = value));
    $("spread").addEventListener("input", () => {
      const value = Number($("spread").value), good = $("spread").value === "" || (value > 0 && value < 1e6);
      $("spread").setAttribute("aria-invalid", String(!good));
      state.spread = good && value > 0 ? value : null;
      update($("spread"));
    });
    slider($("radius-slider"), (value) => (state.radius = rounded(value)));
    number($("amount"), false, 1e-9, 700, (value) => (state.amount = value));
    slider($("amount-slider"), (value) => (state.amount = rounded(value)));
    number($("delta"), false, 1e-300, 0.5, (value) => (state.delta = value));
    number($("error"), false, 1e-12, 1e6, askForError);
    slider($("error-slider"), (value) => askForError(rounded(value)));
    number($("releases"), true, 1, 100, (value) => {
      state.weights = Array.from({ length: value }, (_, i) => state.weights[i] || 1);
      weightFields();
    });
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.addEventListener("click", () => copy(button));
    }
    addEventListener("resize", () => update(null));
  }

  async function copy(button) {
    const block = $(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block);
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  }

  function fields(holder, labels, values, bounds, whole, set) {
    holder.replaceChildren(...labels.map((text, i) => {
      const row = Object.assign(document.createElement("div"), { className: "field" });
      const id = `${holder.id}-${i}`;
      const label = Object.assign(document.createElement("label"), { htmlFor: id, textContent: text });
      const input = Object.assign(document.createElement("input"), { id, type: "number", value: values[i], step: whole ? 1 : "any" });
      [input.min, input.max] = bounds[i];
      number(input, whole, bounds[i][0], bounds[i][1], (value) => set(i, value));
      row.append(label, input);
      return row;
    }));
  }

  function sizeFields() {
    const asked = spaces.FAMILIES[state.family].sizes, now = sizes();
    fields($("sizes"), asked.map((one) => one[1]), now, asked.map((one) => [one[2], one[3]]), true, (i, value) => {
      now[i] = value;
      // a subspace is smaller than the space around it
      if (now.length === 2 && now[1] >= now[0]) {
        now[1 - i] = i === 0 ? now[0] - 1 : now[1] + 1;
        $(`sizes-${1 - i}`).value = now[1 - i];
      }
    });
    $("metric-field").hidden = !spaces.FAMILIES[state.family].metrics;
  }

  function weightFields() {
    const few = state.weights.length > 1 && state.weights.length <= 8 ? state.weights : [];
    if (!few.length) state.weights.fill(1);
    fields($("weights"), few.map((_, i) => `Weight of release ${i + 1}`), few, few.map(() => [0.001, 1e6]), false,
      (i, value) => (state.weights[i] = value));
  }

  const cell = (text, name = "td") => Object.assign(document.createElement(name), { textContent: text });

  function table(found, taken) {
    const body = $("table").tBodies[0];
    body.replaceChildren(...found.map((row, k) => {
      const line = document.createElement("tr");
      const head = cell("", "td");
      head.innerHTML = `<svg class="swatch" viewBox="0 0 26 10" aria-hidden="true"><line x1="0" y1="5" x2="26" y2="5" stroke-width="3" style="${chart.style(k)}"/></svg>`;
      head.append(row.key);
      line.append(head);
      if (row.available) {
        const numbers = [row.sigma, row.mean, row.radius90, row.atEdge];
        line.append(...numbers.map((x) => cell(x === null ? "–" : short(x))));
      } else {
        line.append(Object.assign(cell(row.reason), { className: "reason", colSpan: 4 }));
      }
      if (row === taken) line.className = "taken";
      return line;
    }));
    $("table-help").textContent = `Errors are distances (${spaces.FAMILIES[state.family].unit}), of noise before projection into ` +
      "the ball. Rounded and lattice noise keep the promise down to the last bit that is shown; idealized noise keeps it in real numbers.";
  }

  const inWords = (b) => `${money.LETTER[b.kind]} = ${short(money.numberOf(b))}` + (b.kind === "approx" ? `, δ = ${short(b.delta)}` : "");

  function releases(facts) {
    const several = state.weights.length > 1;
    $("shares").hidden = !several;
    if (!several) return { way: 0, part: null, errors: [] };
    const best = planner.shared(facts, budget(), state.weights, state.mechanism);
    const total = state.weights.reduce((a, b) => a + b, 0);
    $("shares-help").textContent = state.kind === "approx"
      ? `(ε, δ) cannot be cut without loss; it is cut as the ${best.way === 0 ? "pure ε" : "Gaussian μ"} that it affords.`
      : "Together the releases spend the budget, no more.";
    $("share-table").tBodies[0].replaceChildren(...best.releases.map(({ part, row }, i) => {
      const line = document.createElement("tr");
      const told = row ? [row.key, short(row.mean)] : ["none keeps it", "–"];
      line.append(...[i + 1, `${short((100 * state.weights[i]) / total, 3)} %`, inWords(part), ...told].map((text) => cell(text)));
      return line;
    }));
    return { way: best.way, part: best.releases[0].part, errors: best.releases.map(({ row }) => (row ? row.mean : Infinity)) };
  }

  let speaking;
  function say(text) {
    clearTimeout(speaking);
    speaking = setTimeout(() => ($("spoken").textContent = text), 500);
  }

  const put = (id, value, from) => {
    const field = $(id);
    if (field === from) return;
    field.value = value;
    field.removeAttribute("aria-invalid");
  };

  // Everything that follows from the state; `from` is the control being used, which is left alone.
  function update(from) {
    const place = where(), facts = planner.facts(place, state.radius, state.n);
    put("family", state.family, from);
    put("metric", state.metric, from);
    put("kind", state.kind, from);
    put("mechanism", state.mechanism, from);
    put("n", state.n, from);
    put("n-slider", Math.log10(state.n), from);
    put("releases", state.weights.length, from);
    const most = Math.min(place.maxRadius, 10);
    $("radius-slider").max = Math.log10(most * 1.1);
    put("radius", short(state.radius, 6), from);
    put("spread", state.spread === null ? "" : short(state.spread, 6), from);
    put("radius-slider", Math.log10(state.radius), from);
    $("radius-help").textContent = place.maxRadius === Infinity
      ? `${place.dim} dimensions; any radius has a unique mean here.`
      : `${place.dim} dimensions; below ${short(place.maxRadius, 5)} a mean is certain to be unique.`;
    $("center-help").textContent = `Centre: ${snippets.center(place, state.center).words}.`;
    $("radius").setAttribute("aria-invalid", String(Boolean(facts.refusal)));
    [$("amount-slider").min, $("amount-slider").max] = RANGES[state.kind];
    $("amount-label").textContent = money.LETTER[state.kind];
    put("amount", short(state.amount, 6), from);
    put("amount-slider", Math.log10(state.amount), from);
    put("delta", short(state.delta, 12), from);
    $("delta-field").hidden = state.kind !== "approx";
    $("refusal").hidden = !facts.refusal;
    $("plan").hidden = Boolean(facts.refusal);
    $("lines").hidden = Boolean(facts.refusal);
    remember();
    if (facts.refusal) {
      if ($("refusal").textContent !== facts.refusal) $("refusal").textContent = facts.refusal;
      return;
    }
    const found = planner.rows(facts, budget()), taken = planner.pick(found, state.mechanism);
    $("error-slider").min = Math.log10(state.radius) - 4;
    $("error-slider").max = Math.log10(state.radius);
    if (taken) {
      put("error", short(taken.mean, 4), from);
      put("error-slider", Math.log10(taken.mean), from);
    }
    table(found, taken);
    chart.draw($("chart"), { facts, budget: budget(), wanted: state.mechanism, range: RANGES[state.kind], unit: spaces.FAMILIES[state.family].unit }, (amount) => {
      state.amount = rounded(amount);
      update(null);
    });
    const cut = releases(facts);
    summarise(facts, taken, cut.errors);
    $("planned").textContent = `Planned: ${place.label}, a ball of radius ${short(state.radius)}, ` +
      `${state.n.toLocaleString("en")} records, ${inWords(budget())}.`;
    const lines = { where: place, ...state, budget: budget(), wanted: state.mechanism, way: cut.way, part: cut.part };
    lines.idealized = state.mechanism.includes("idealized");
    $("python").textContent = snippets.python(lines);
    $("command").textContent = snippets.command(lines);
  }

  function summarise(facts, taken, shared) {
    if (!taken) {
      const reason = planner.rows(facts, budget(), false).find((row) => row.key === state.mechanism)?.reason;
      $("summary").textContent = `This noise is not available: ${reason || "no mechanism keeps the budget"}.`;
    } else {
      const useless = taken.mean >= state.radius ? " WARNING: the noise is larger than the ball: this release says little more than the public centre. " +
        "Use more records, a smaller ball or a larger budget." : "";
      $("summary").classList.toggle("noisy", Boolean(useless));
      const [least, most] = [Math.min(...shared), Math.max(...shared)].map((x) => short(x));
      const several = !shared.length ? "" : ` Cut into ${shared.length} releases, each is off by ` +
        `${least === most ? least : `${least} to ${most}`}.`;
      const told = spaces.describe(where(), taken.mean);
      $("summary").innerHTML = `With ${inWords(budget())} and ${state.n.toLocaleString("en")} records, the private mean is off by ` +
        `<strong>${short(taken.mean)}</strong> on average, ${short((100 * taken.mean) / state.radius, 3)}\u00a0% of the radius${told && ` (${told})`}, with ` +
        `${taken.key}.${several}${useless}`;
      if (state.spread !== null) {
        const beside = planner.sampling(state.n, state.spread, taken.mean);
        $("summary").append(` ${short(beside.ratio, 3)} times the sampling error. ${beside.words}`);
      }
    }
    say($("summary").textContent);
  }

  // The plan lives in the address too, so that it can be kept as a bookmark.
  function remember() {
    const kept = { ...state, sizes: { [state.family]: sizes() } };
    try {
      history.replaceState(null, "", "#" + encodeURIComponent(JSON.stringify(kept)));
    } catch { /* some browsers forbid it for files on disk: the page works without */ }
  }

  function recalled(text) {
    const allowed = {
      family: Object.keys(spaces.FAMILIES), metric: spaces.METRICS, kind: Object.keys(RANGES),
      mechanism: ["auto", ...planner.MECHANISMS.map(([name, numerics]) => `${name} (${numerics})`)],
    };
    let kept;
    try {
      kept = JSON.parse(text);
    } catch {
      return;
    }
    for (const [key, values] of Object.entries(allowed)) if (values.includes(kept?.[key])) state[key] = kept[key];
    for (const key of ["n", "radius", "amount", "delta", "spread"]) if (kept?.[key] > 0 && kept[key] < 1e9) state[key] = Number(kept[key]);
    state.n = Math.max(1, Math.round(state.n));
    if (typeof kept?.center?.of === "string" && Array.isArray(kept.center.numbers) && kept.center.numbers.every(Number.isFinite)) {
      state.center = kept.center;
    }
    if (!(state.delta < 0.5)) state.delta = 1e-6;
    const asked = spaces.FAMILIES[state.family].sizes, given = kept?.sizes?.[state.family];
    if (Array.isArray(given) && given.length === asked.length &&
        given.every((value, i) => Number.isInteger(value) && value >= asked[i][2] && value <= asked[i][3]) &&
        !(given.length === 2 && given[1] >= given[0])) {
      state.sizes[state.family] = given;
    }
    if (Array.isArray(kept?.weights) && kept.weights.length <= 100 && kept.weights.every((w) => w > 0 && w < 1e6)) {
      state.weights = kept.weights.length ? kept.weights.map(Number) : [1];
    }
  }

  recalled($("start").textContent);
  if (location.hash.length > 1) {
    try {
      recalled(decodeURIComponent(location.hash.slice(1)));
    } catch { /* a damaged address: start afresh */ }
  }
  fill();
  sizeFields();
  weightFields();
  update(null);
  document.documentElement.dataset.ready = String(performance.now());
})();
