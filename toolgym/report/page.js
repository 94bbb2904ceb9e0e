// Draws the plots and filters the episodes. The page is readable without it.
(async () => {
  "use strict";

  const all = (selector) => [...document.querySelectorAll(selector)];
  const filter = document.getElementById("filter");
  const [search, kind, count] = filter.children;
  const tasks = all(".task");
  const find = () => {
    const text = search.value.toLowerCase();
    const fits = (task) =>
      (!kind.value || task.dataset.kinds.split("|").includes(kind.value)) &&
      task.textContent.toLowerCase().includes(text);
    for (const task of tasks) task.hidden = !fits(task);
    count.value = `${tasks.filter((task) => !task.hidden).length} of ${tasks.length} tasks`;
  };
  filter.addEventListener("input", find);
  filter.hidden = !tasks.length;
  find();

  if (!window.vegaEmbed) return;
  // With `ast` Vega interprets expressions, since the policy of the page forbids `eval`.
  const options = { ast: true, actions: false, renderer: "svg", tooltip: { disableDefaultStyle: true } };
  const specs = JSON.parse(document.getElementById("plots").textContent);
  const views = [];
  const last = {}; // the last value of each name, since the synchronized views send it again
  const share = (view, name, value, set) => {
    const now = JSON.stringify(value);
    if (last[name] === now) return;
    last[name] = now;
    for (const each of views) if (each.view !== view && each.names.includes(name)) set(each.view).runAsync();
  };
  for (const [place, element] of all(".plot").entries()) {
    const drawn = await window.vegaEmbed(element, specs[place], options).catch(console.error);
    if (!drawn) continue;
    const { view } = drawn;
    const { axis, legend } = specs[place].usermeta;
    views.push({ view, names: [axis, legend] });
    if (axis)
      view.addSignalListener("zoom_step", (_, steps) =>
        share(view, axis, steps, (other) => other.signal("zoom_step", steps)),
      );
    if (legend)
      view.addDataListener("pick_store", (_, tuples) => {
        const copies = () => tuples.map(({ unit, fields, values }) => ({ unit, fields, values }));
        share(view, legend, copies(), (other) => other.data("pick_store", copies()));
      });
    await new Promise((next) => setTimeout(next)); // lets the page handle events
  }
})();
