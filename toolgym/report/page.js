/* The page's own script: draws the plots, switches runs and series, zooms, and finds episodes.

   The page is readable without it. Whatever a run brought along is put into the page as text, never as
   markup. `state` is all that a reader chose. */
(() => {
  "use strict";

  const state = {
    runs: new Set(), // numbers of the runs that are switched off
    series: new Map(), // by plot: keys of its series that are switched off
    zoom: new Map(), // by axis: first and last step that are shown
  };
  const drawn = new Map(); // by plot: its view, once it is drawn

  const $ = (id) => document.getElementById(id);
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const data = JSON.parse($("data").textContent);

  function make(name, text = "", className = "") {
    const element = document.createElement(name);
    element.textContent = text;
    element.className = className;
    return element;
  }

  // Plots

  function isOff(chart, id, key) {
    const series = chart.series.find((each) => each.key === key);
    const off = state.series.get(id);
    return Boolean((series && state.runs.has(series.run)) || (off && off.has(key)));
  }

  function offOf(id) {
    const chart = data.charts[id];
    return chart.series.map((each) => each.key).filter((key) => isOff(chart, id, key));
  }

  function stepsOf(chart) {
    const value = (name) => chart.spec.params.find((each) => each.name === name)?.value;
    return chart.axis ? [value("lo"), value("hi")] : undefined;
  }

  /* First and last step of all plots over the same steps. */
  function spanOf(axis) {
    const spans = Object.values(data.charts).filter((each) => each.axis === axis).map(stepsOf);
    return [Math.min(...spans.map((span) => span[0])), Math.max(...spans.map((span) => span[1]))];
  }

  function parametersOf(id) {
    const chart = data.charts[id];
    const values = { off: offOf(id) };
    if (chart.axis) {
      const [low, high] = state.zoom.get(chart.axis) || spanOf(chart.axis);
      Object.assign(values, { lo: low, hi: high });
    }
    return values;
  }

  function draw(id) {
    const element = $(id);
    if (drawn.has(id) || !element || !element.clientWidth || !window.toolgymPlots) return;
    drawn.set(id, null);
    const chart = data.charts[id];
    const values = parametersOf(id);
    const params = chart.spec.params.map((each) =>
      each.name in values ? { ...each, value: values[each.name] } : each,
    );
    const spec = { ...chart.spec, params, config: data.config };
    // `ast`: expressions are interpreted, so that the page can forbid `eval`.
    const options = {
      ast: true, actions: false, defaultStyle: false, logLevel: 1, mode: "vega-lite", renderer: "svg",
      tooltip: (handler, event, item, value) => tell(event, value),
    };
    window.toolgymPlots(element, spec, options).then(({ view }) => {
      drawn.set(id, view);
      update(id);
      if (chart.axis) letZoom(element, view, chart.axis);
      if (chart.spec.datasets) letPoint(id, element, view);
    });
  }

  function update(id) {
    const view = drawn.get(id);
    if (!view) return;
    for (const [name, value] of Object.entries(parametersOf(id))) view.signal(name, value);
    view.runAsync();
  }

  const updateAll = () => drawn.forEach((_, id) => update(id));

  /* A few at a time, so that the page answers meanwhile; those that are seen first. */
  function drawAll() {
    const near = (id) => [id, Math.abs($(id)?.getBoundingClientRect().top ?? Infinity)];
    const ids = Object.keys(data.charts).map(near).sort((a, b) => a[1] - b[1]).map(([id]) => id);
    const next = () => {
      ids.splice(0, 4).forEach(draw);
      if (ids.length) setTimeout(next);
    };
    next();
  }

  /* Dragging over a plot of lines shows those steps only; a double click shows all again. */
  function letZoom(element, view, axis) {
    element.classList.add("zooms");
    let chosen = null;
    view.addSignalListener("brush", (_, value) => { chosen = value && value.x; });
    window.addEventListener("pointerup", () => {
      if (!chosen) return;
      const [low, high] = [Math.round(Math.min(...chosen)), Math.round(Math.max(...chosen))];
      chosen = null;
      view.signal("brush_x", []);
      if (high - low >= 1) zoomTo(axis, [low, high]);
      else view.runAsync();
    });
    element.addEventListener("dblclick", () => zoomTo(axis, null));
  }

  /* The pointer over a plot of lines is told the values of the nearest step. */
  function letPoint(id, element, view) {
    const steps = [...new Set(data.charts[id].spec.datasets.lines.map((row) => row.x))].sort((a, b) => a - b);
    const leave = () => {
      tip.hidden = true;
      if (view.signal("at") !== null) view.signal("at", null).runAsync();
    };
    element.addEventListener("pointerleave", leave);
    element.addEventListener("pointermove", (event) => {
      const { left } = element.getBoundingClientRect();
      const [low, high] = view.scale("x").domain();
      const wanted = view.scale("x").invert(event.clientX - left - view.origin()[0]);
      const seen = steps.filter((step) => low <= step && step <= high);
      if (!seen.length) return leave();
      const near = (a, b) => (Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a);
      const step = seen.reduce(near);
      if (view.signal("at") !== step) view.signal("at", step).runAsync();
      showTip(event, linesAt(id, step));
    });
  }

  function zoomTo(axis, span) {
    if (span) state.zoom.set(axis, span);
    else state.zoom.delete(axis);
    updateAll();
    showZoom();
  }

  // What the pointer is told

  const tip = make("div", "", "tip");
  tip.hidden = true;
  document.body.append(tip);

  function inWords(value, share) {
    if (value === null || value === undefined) return "–";
    const number = share ? value * 100 : value;
    const digits = share ? number.toFixed(1) : String(Number(number.toPrecision(4)));
    return digits.replace("-", "\u2212") + (share ? " %" : "");
  }

  /* The values of each series at one step, as they were logged. */
  function linesAt(id, step) {
    const chart = data.charts[id];
    const at = chart.spec.datasets.lines.filter((row) => row.x === step);
    const rows = new Map(at.map((row) => [row.k, row]));
    const lines = [make("p", `step ${step}`)];
    for (const series of chart.series) {
      if (!rows.has(series.key) || isOff(chart, id, series.key)) continue;
      const { raw, y } = rows.get(series.key);
      const line = make("p");
      line.append(make("i", "", `key line s${series.style % 6} d${series.style % 5}`));
      line.append(`${series.label} `, make("b", inWords(raw ?? y, chart.share)));
      lines.push(line);
    }
    return lines;
  }

  function showTip(event, lines) {
    tip.replaceChildren(...lines);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = event.clientX + 16 + width > innerWidth ? event.clientX - width - 16 : event.clientX + 16;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 12, innerHeight - height - 4))}px`;
  }

  /* What Vega tells of a mark: a text that was made with the plot. */
  function tell(event, value) {
    if (value === null || value === undefined || value === "") tip.hidden = true;
    else showTip(event, [make("p", String(value))]);
  }

  // Switches: runs for the whole page, series for their plot

  function switchOf(element, isOn, toggle) {
    const button = make("button", "", "switch");
    button.type = "button";
    button.append(...element.childNodes);
    const show = () => button.setAttribute("aria-pressed", String(isOn()));
    button.addEventListener("click", toggle);
    element.replaceChildren(button);
    show();
    return show;
  }

  const switches = [];

  function flip(set, value) {
    if (!set.delete(value)) set.add(value);
  }

  function flipRun(run) {
    flip(state.runs, run);
    showRuns();
  }

  function showRuns() {
    switches.forEach((show) => show());
    for (const element of all("main [data-run]"))
      element.classList.toggle("is-off", state.runs.has(Number(element.dataset.run)));
    updateAll();
    find();
  }

  function addSwitches() {
    for (const element of all("#runs [data-run]")) {
      const run = Number(element.dataset.run);
      switches.push(switchOf(element, () => !state.runs.has(run), () => flipRun(run)));
    }
    for (const legend of all(".legend[data-for]")) {
      const id = legend.dataset.for;
      const chart = data.charts[id];
      if (!chart || !window.toolgymPlots) continue;
      for (const element of all("[data-key]", legend)) {
        const key = element.dataset.key;
        const { run } = chart.series.find((each) => each.key === key);
        const toggle = () => {
          if (run !== null) return flipRun(run);
          if (!state.series.has(id)) state.series.set(id, new Set());
          flip(state.series.get(id), key);
          switches.forEach((show) => show());
          update(id);
        };
        switches.push(switchOf(element, () => !isOff(chart, id, key), toggle));
      }
    }
  }

  // Steps

  const MAIN = "grpo";

  function showZoom() {
    const form = $("zoom");
    const has = window.toolgymPlots && Object.values(data.charts).some((each) => each.axis === MAIN);
    if (!form || !has) return;
    const [low, high] = spanOf(MAIN);
    const [from, to] = state.zoom.get(MAIN) || [low, high];
    for (const [input, value] of [[form.low, from], [form.high, to]]) {
      input.min = low;
      input.max = high;
      if (document.activeElement !== input || Number(input.value) !== value) input.value = value;
    }
    form.hidden = false;
  }

  function addZoom() {
    const form = $("zoom");
    if (!form) return;
    form.addEventListener("change", () => {
      const [low, high] = spanOf(MAIN);
      const limit = (input, other) => Math.min(high, Math.max(low, input.value === "" ? other : Number(input.value)));
      const span = [limit(form.low, low), limit(form.high, high)];
      if (span[0] < span[1]) zoomTo(MAIN, span);
      else showZoom();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      state.zoom.clear();
      zoomTo(MAIN, null);
    });
    showZoom();
  }

  // Episodes

  const texts = new WeakMap();

  function textOf(task) {
    if (!texts.has(task)) texts.set(task, task.textContent.toLowerCase());
    return texts.get(task);
  }

  function fits(task, { text = "", verdict = "", code = "", when = "" }) {
    const episodes = all(".episode", task).filter((each) => !state.runs.has(Number(each.dataset.run)));
    const seen = episodes.filter((each) => !when || each.dataset.when === when || each.dataset.when === "evaluated");
    const last = when === "before" ? seen : seen.filter((each) => each.dataset.when !== "before");
    if (!episodes.length) return false;
    if (code && !seen.some((each) => (each.dataset.codes || "").split("\n").includes(code))) return false;
    if (verdict === "gained" || verdict === "lost") {
      const right = (each) => each?.dataset.verdict === "right";
      const moved = episodes.filter((each) => each.dataset.when === "after").some((after) => {
        const before = episodes.find((each) => each.dataset.when === "before" && each.dataset.run === after.dataset.run);
        const [was, now] = [right(before), right(after)];
        return before?.dataset.verdict && after.dataset.verdict && was !== now && now === (verdict === "gained");
      });
      if (!moved) return false;
    } else if (verdict && !(last.length ? last : seen).some((each) => each.dataset.verdict === verdict)) return false;
    return !text || textOf(task).includes(text);
  }

  const inOrder = all("#tasks > .task");

  function find() {
    const form = $("finder");
    if (!form) return;
    const chosen = Object.fromEntries(new FormData(form));
    chosen.text = (chosen.text || "").toLowerCase();
    const place = $("tasks");
    const sorted = [...inOrder];
    const turns = (task) => Number(task.dataset.turns);
    if (chosen.order === "longest") sorted.sort((a, b) => turns(b) - turns(a));
    if (chosen.order === "shortest") sorted.sort((a, b) => turns(a) - turns(b));
    if (sorted.some((task, index) => place.children[index] !== task)) place.append(...sorted);
    let count = 0;
    for (const task of sorted) {
      const fit = fits(task, chosen);
      task.classList.toggle("is-off", !fit);
      count += fit;
      for (const each of all(".episode, .end", task)) {
        const other = chosen.when && each.dataset.when !== chosen.when && each.dataset.when !== "evaluated";
        each.classList.toggle("is-off", Boolean(other) || state.runs.has(Number(each.dataset.run)));
      }
    }
    form.count.value = `${count} of ${sorted.length} tasks`;
  }

  function addFinder() {
    const form = $("finder");
    if (!form) return;
    form.addEventListener("input", find);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    find();
  }

  /* A link to an episode opens it, whatever hides it. */
  function follow() {
    const target = location.hash.length > 1 && $(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.classList.contains("is-off")) {
      $("finder").reset();
      find();
    }
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    target.scrollIntoView();
  }

  for (const id of Object.keys(data.charts)) {
    const element = $(id);
    if (element) element.style.minHeight = `${Number(element.dataset.height)}px`;
  }
  addSwitches();
  addZoom();
  addFinder();
  showRuns();
  drawAll();
  for (const each of all("details")) each.addEventListener("toggle", () => each.open && drawAll());
  follow();
  addEventListener("hashchange", follow);
})();
