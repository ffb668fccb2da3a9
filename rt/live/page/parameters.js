// The panel of the parameters of the plant.

import { get } from "./door.js";
import { change, el, text } from "./dom.js";
import { number, quantity, shown } from "./units.js";

export class Parameters {
  constructor(root, description) {
    this.root = root;
    const list = description.signals.filter((s) => s.kind === "parameter");
    list.sort((a, b) => b.tunable - a.tunable);
    this.rows = new Map(list.map((s) => [s.name, this.row(s)]));
    this.filter = el("input", { type: "search", placeholder: "filter", "aria-label": "filter parameters", oninput: () => this.show() });
    root.append(el("div", { class: "head" }, el("h2", {}, "Parameters"), this.filter),
      el("div", { class: "rows" }, ...[...this.rows.values()].map((r) => r.root)));
    if (!list.length) root.append(el("p", { class: "empty" }, "the plant file declares no parameter"));
    else if (!list.some((s) => s.tunable)) root.append(el("p", { class: "note" }, "No parameter can change in this run: the plant file marks those that can with tune: true."));
    this.poll();
  }

  row(s) {
    const r = { signal: s, value: el("b", { class: "number" }, number(s.value)), answer: el("span", { class: "answer note", role: "status" }) };
    const range = s.min !== undefined && s.max !== undefined;
    const limits = range ? `${number(s.min)} to ${quantity(s.max, s.unit)}` : s.min !== undefined ? `from ${quantity(s.min, s.unit)}` : s.max !== undefined ? `to ${quantity(s.max, s.unit)}` : "";
    r.root = el("div", { class: "row" }, el("span", { class: "name", title: s.about || s.name }, s.name), r.value, el("span", { class: "unit" }, shown(s.unit)));
    if (!s.tunable) {
      r.root.append(el("span", { class: "note" }, "fixed"));
      return r;
    }
    if (range) {
      r.slider = el("input", { type: "range", min: s.min, max: s.max, step: (s.max - s.min) / 200, value: s.value, "aria-label": s.name, title: limits,
        oninput: () => { r.box.value = Number(Number(r.slider.value).toPrecision(4)); }, onchange: () => this.put(r, Number(r.box.value)) });
    }
    r.box = el("input", { type: "number", step: "any", min: s.min, max: s.max, value: s.value === undefined ? "" : Number(s.value.toPrecision(6)), "aria-label": `${s.name}, ${limits}`,
      onchange: () => { if (r.box.value !== "") this.put(r, Number(r.box.value)); } });
    r.root.append(...[r.slider, r.box].filter(Boolean), el("span", { class: "note limits" }, limits), r.answer);
    return r;
  }

  // put asks for a value. The answer stays in the row until the next one.
  async put(r, value) {
    r.busy = true;
    r.root.classList.add("busy");
    text(r.answer, "prepares the tables");
    const a = await change("param", { values: { [r.signal.name]: value } }, `${r.signal.name} ${quantity(value, r.signal.unit)}`);
    r.busy = false;
    r.root.classList.remove("busy");
    text(r.answer, a.error ? a.error : a.superseded ? `a later request has replaced it, tick ${a.tick}` : `in effect from tick ${a.tick}`);
    r.answer.classList.toggle("bad", Boolean(a.error));
    this.refresh();
  }

  show() {
    const typed = this.filter.value.toLowerCase();
    for (const [name, r] of this.rows) r.root.hidden = !name.toLowerCase().includes(typed);
  }

  async refresh() {
    const a = await get("description").catch(() => null);
    for (const s of a?.signals || []) {
      const r = s.kind === "parameter" && this.rows.get(s.name);
      if (!r) continue;
      text(r.value, number(s.value));
      if (r.box && !r.busy && document.activeElement !== r.box && document.activeElement !== r.slider) {
        r.box.value = Number(s.value.toPrecision(6));
        if (r.slider) r.slider.value = s.value;
      }
    }
  }

  async poll() {
    if (this.rows.size && this.root.offsetParent !== null && !document.hidden) await this.refresh();
    setTimeout(() => this.poll(), 3000);
  }
}
