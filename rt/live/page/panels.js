// The panels of inputs and faults.

import { get } from "./door.js";
import { change, draggable, el, text } from "./dom.js";
import { number, quantity, shown } from "./units.js";

// Inputs shows the inputs of the plant, and all else that can be set.
export class Inputs {
  constructor(root, signals, description) {
    const ports = new Set(description.signals.filter((s) => s.kind === "bus" && s.direction === "in").map((s) => s.port));
    const list = description.signals.filter((s) => s.settable || s.kind === "input");
    list.sort((a, b) => b.settable - a.settable);
    this.rows = new Map(list.map((s) => [s.name, this.row(s, ports.has(s.name))]));
    this.filter = el("input", { type: "search", placeholder: "filter", "aria-label": "filter inputs", oninput: () => this.show() });
    const head = el("div", { class: "head" }, el("h2", {}, "Inputs"), this.filter);
    if (!description.record) head.append(el("button", { type: "button", onclick: () => change("release", { names: ["all"] }, "all released") }, "release all"));
    root.append(head,
      el("div", { class: "rows" }, ...[...this.rows.values()].map((r) => r.root)));
    signals.want("inputs", list.map((s) => s.name));
    signals.listeners.push(() => { this.fresh = true; });
    setInterval(() => { if (this.fresh) this.update(signals); this.fresh = false; }, 150);
  }

  row(s, driven) {
    const r = { signal: s, value: el("b", { class: "number" }, "–") };
    const range = s.min !== undefined && s.max !== undefined;
    const limits = range ? `${number(s.min)} to ${quantity(s.max, s.unit)}` : shown(s.unit);
    const name = draggable(el("span", { class: "name", title: s.about || s.name }, s.name), s.name);
    r.root = el("div", { class: "row" }, name, r.value, el("span", { class: "unit" }, shown(s.unit)));
    if (!s.settable) {
      r.root.append(el("span", { class: "note" }, driven ? "from the bus" : "not settable"));
      return r;
    }
    const put = (v) => change("set", { values: { [s.name]: v } }, `${s.name} ${quantity(v, s.unit)}`);
    if (range && s.texts?.length > 1 && s.max - s.min < 32) {
      r.box = el("select", { "aria-label": s.name, title: limits, onchange: () => { if (r.box.value) put(Number(r.box.value)); } },
        el("option", { value: "" }, "set"), ...s.texts.filter((t) => t.value >= s.min && t.value <= s.max).map((t) => el("option", { value: t.value }, t.text)));
    } else if (range) {
      r.slider = el("input", { type: "range", min: s.min, max: s.max, step: (s.max - s.min) / 200, "aria-label": s.name, title: limits,
        oninput: () => this.slide(r, put), onchange: () => this.slide(r, put) });
    }
    r.box ||= el("input", { type: "number", step: "any", min: s.min, max: s.max, "aria-label": `${s.name}, ${limits}`,
      onchange: () => { if (r.box.value !== "") put(Number(r.box.value)); } });
    r.release = el("button", { type: "button", class: "plain", disabled: true, onclick: () => change("release", { names: [s.name] }, s.name + " released") }, "release");
    r.root.append(...[r.slider, r.box, r.release].filter(Boolean));
    if (!r.slider && r.box.tagName === "INPUT") r.root.append(el("span", { class: "note" }, limits));
    return r;
  }

  // slide sends the place of a slider, one request at a time.
  async slide(r, put) {
    r.next = Number(r.slider.value);
    if (r.sending) return;
    r.sending = true;
    while (r.next !== undefined) {
      const v = r.next;
      r.next = undefined;
      await put(v);
    }
    r.sending = false;
  }

  show() {
    const typed = this.filter.value.toLowerCase();
    for (const [name, r] of this.rows) r.root.hidden = !name.toLowerCase().includes(typed);
  }

  update(signals) {
    for (const [name, r] of this.rows) {
      const v = signals.values.get(name);
      const known = r.signal.texts?.find((t) => t.value === v);
      text(r.value, known ? known.text : number(v));
      if (r.slider && !r.sending && document.activeElement !== r.slider && Number.isFinite(v)) r.slider.value = v;
    }
  }

  status(a) {
    for (const [name, r] of this.rows) {
      const value = a.set?.[name];
      r.root.classList.toggle("set", value !== undefined);
      if (r.release) r.release.disabled = value === undefined;
    }
  }
}

// Faults shows the faults of the run and puts in new ones.
export class Faults {
  constructor(root, description) {
    this.since = new Map(); // tick from which a fault of this page acts, by name
    const inputs = description.signals.filter((s) => s.kind === "input").map((s) => "input=" + s.name);
    const messages = [...new Set(description.signals.filter((s) => s.kind === "bus").map((s) => s.name.split(".")[0]))].map((m) => "frame=" + m);
    const signals = description.signals.filter((s) => s.kind === "bus" && s.direction === "out").map((s) => "signal=" + s.name);
    const targets = el("datalist", { id: "targets" }, ...[...inputs, ...messages, ...signals].map((v) => el("option", { value: v })));
    const kinds = el("datalist", { id: "kinds" }, ...["stuck=0", "offset=1", "factor=0.5", "drop", "delay=50 ms"].map((v) => el("option", { value: v })));
    const box = (label, placeholder, list) => el("label", {}, label, el("input", { type: "text", placeholder, list, autocomplete: "off", name: label }));
    this.form = el("form", { onsubmit: (e) => { e.preventDefault(); this.put(); } },
      box("name", "ice"), box("where", "input=mu_left", "targets"), box("what", "stuck=0.1", "kinds"), box("for", "2 s, or empty"),
      el("button", {}, "Put in"), targets, kinds);
    this.list = el("div", { class: "rows" });
    root.append(el("div", { class: "head" }, el("h2", {}, "Faults"),
      el("button", { type: "button", onclick: () => this.clear("all") }, "clear all")), this.form, this.list,
    el("p", { class: "note" }, "The words are those of a scenario file: lockstep help scenario."));
    this.poll();
  }

  async put() {
    const field = (n) => this.form.elements[n].value.trim();
    const words = [field("name") && "name=" + field("name"), field("where"), field("what"), field("for") && "for=" + field("for")];
    const a = await change("fault", { arguments: words.filter(Boolean) }, "fault " + field("name"));
    for (const f of a?.faults || []) this.since.set(f.name, a.tick);
    this.refresh();
  }

  async clear(name) {
    await change("clear", { names: [name] }, name === "all" ? "all faults cleared" : name + " cleared");
    this.refresh();
  }

  async poll() {
    await this.refresh();
    setTimeout(() => this.poll(), 500);
  }

  async refresh() {
    const a = await get("faults").catch(() => null);
    if (!a) return;
    const faults = a.faults || []; // the answer leaves out an empty list
    const rows = faults.map((f) => {
      const since = this.since.get(f.name);
      const times = f.count ? `${f.count} times` : "";
      const over = f.state === "over" || f.state === "cleared";
      return el("div", { class: "row fault " + f.state }, el("span", { class: "pill " + f.state }, f.state), el("span", { class: "name" }, f.name),
        el("code", {}, f.spec), el("span", { class: "number" }, since === undefined ? times : `since tick ${since} ${times}`),
        el("button", { type: "button", class: "plain", disabled: over, onclick: () => this.clear(f.name) }, "clear"));
    });
    if (!rows.length) rows.push(el("p", { class: "empty" }, "no fault"));
    const key = JSON.stringify(faults);
    if (key !== this.shown) this.list.replaceChildren(...rows);
    this.shown = key;
    this.active = faults.filter((f) => f.state === "active").length;
  }
}
