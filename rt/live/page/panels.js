// The panels of inputs and faults.

import { get } from "./door.js";
import { change, draggable, el, set, text } from "./dom.js";
import { mark, number, quantity, shown } from "./units.js";

const choices = (s) => (s.texts || []).filter((t) => t.value >= s.min && t.value <= s.max);
const textOf = (s, v) => s.texts?.find((t) => t.value === v)?.text;

// control returns the kind of control of a signal: "switch" for two values, "selector" for values with texts, "gear"
// and "pedal" by their names, else "value". A plant file has no other mark of a pedal.
function control(s) {
  const range = s.min !== undefined && s.max !== undefined;
  if (range && s.step && s.max - s.min === s.step) return "switch";
  if (range && choices(s).length > 1) return "selector";
  const words = s.name.split(/[._ ]|(?<=[a-z])(?=[A-Z])/).map((w) => w.toLowerCase()); // "EBC1.BrakePedal": ebc1, brake, pedal
  if (range && s.step && s.min <= 0 && words.some((w) => /^(gear|lever|selector)$/.test(w))) return "gear";
  const pedals = s.kind === "bus" ? /^(throttle|pedal|accelerator)$/ : /^(throttle|pedal|accelerator|brake|retarder|starter)$/;
  return range && words.some((w) => pedals.test(w)) ? "pedal" : "value";
}

// Inputs shows the inputs of the plant, and all else that can be set.
export class Inputs {
  constructor(root, signals, description, plant) {
    const ports = new Set(description.signals.filter((s) => s.kind === "bus" && s.direction === "in").map((s) => s.port));
    const list = description.signals.filter((s) => (s.settable || s.kind === "input") && s.follows !== "follows the ignition");
    list.sort((a, b) => b.settable - a.settable);
    const inputOf = (bus) => (bus.direction === "in" ? bus.port : plant.carried?.[bus.port]);
    for (const s of list) { // an input has the texts of the bus signal that it comes from, or goes to
      if (s.kind === "input") s.texts ||= description.signals.find((o) => o.kind === "bus" && o.texts && inputOf(o) === s.name)?.texts;
    }
    this.record = Boolean(description.record);
    const driver = list.filter((s) => s.settable && control(s) !== "value");
    const order = ["switch", "gear", "selector", "pedal"];
    driver.sort((a, b) => order.indexOf(control(a)) - order.indexOf(control(b)));
    const others = list.filter((s) => !driver.includes(s));
    this.rows = new Map([...driver, ...others].map((s) => [s.name, this.row(s, ports.has(s.name))]));
    this.filter = el("input", { type: "search", placeholder: "filter", "aria-label": "filter inputs", oninput: () => this.show() });
    const head = el("div", { class: "head" }, el("h2", {}, description.title || "Inputs"), this.filter);
    if (!description.record) head.append(el("button", { type: "button", onclick: () => change("release", { names: ["all"] }, "all released") }, "release all"));
    this.ignition = el("select", { "aria-label": "ignition", title: "state of the ignition", hidden: true,
      onchange: () => change("ignition", { state: this.ignition.value }, "ignition " + this.ignition.value) },
      ...["off", "standby", "ignition", "crank", "run"].map((s) => el("option", { value: s }, "ignition: " + s)));
    if (!description.record) head.append(this.ignition);
    const rows = (of) => of.map((s) => this.rows.get(s.name).root);
    const heading = driver.length > 0;
    root.append(head, el("div", { class: "rows" }, heading && el("h3", {}, "Ignition, gear, pedals and switches"), ...rows(driver),
      heading && others.length > 0 && el("h3", {}, "Other inputs"), ...rows(others)));
    signals.want("inputs", list.map((s) => s.name));
    signals.listeners.push(() => { this.fresh = true; });
    setInterval(() => { if (this.fresh) this.update(signals); this.fresh = false; }, 150);
  }

  row(s, driven) {
    const r = { signal: s, value: el("b", { class: "number" }, "–") };
    const range = s.min !== undefined && s.max !== undefined;
    const limits = range ? `${number(s.min)} to ${quantity(s.max, s.unit)}` : shown(s.unit);
    const name = draggable(el("span", { class: "name", title: s.about || s.name }, ...s.name.split(/(?<=[._])/).flatMap((part) => [part, el("wbr")])), s.name);
    if (s.follows) {
      r.own = el("small", {}, s.follows.replace("its own", "the plant file's"));
      name.append(r.own);
    }
    r.root = el("div", { class: "row" }, name, r.value, el("span", { class: "unit" }, shown(s.unit)));
    if (!s.settable) {
      if (!this.record) r.root.append(el("span", { class: "note" }, driven ? "from the bus" : "not settable"));
      return r;
    }
    const kind = control(s);
    const said = (v) => textOf(s, v) ?? (kind === "switch" ? (v === s.max ? "on" : "off") : quantity(v, s.unit));
    const put = (v) => change("set", { values: { [s.name]: v } }, `${s.name} ${said(v)}`);
    if (kind === "switch") {
      const [off, on] = [s.min, s.max];
      r.switch = el("button", { type: "button", role: "switch", class: "switch", "aria-label": s.name, "aria-checked": "false",
        onclick: () => put(r.switch.getAttribute("aria-checked") === "true" ? off : on) });
    } else if (kind === "selector") {
      r.box = el("select", { "aria-label": s.name, title: limits, onchange: () => put(Number(r.box.value)) },
        el("option", { value: "", disabled: true, hidden: true }), ...choices(s).map((t) => el("option", { value: t.value }, t.text)));
    } else if (kind === "gear") {
      const step = (by) => () => put(Math.min(s.max, Math.max(s.min, (Number.isFinite(r.last) ? r.last : 0) + by * s.step)));
      r.step = el("span", { class: "buttons" }, el("button", { type: "button", "aria-label": s.name + " down", onclick: step(-1) }, "−"),
        el("button", { type: "button", "aria-label": s.name + " neutral", onclick: () => put(0) }, "N"),
        el("button", { type: "button", "aria-label": s.name + " up", onclick: step(1) }, "+"));
    } else if (range) {
      const step = (s.max - s.min) / 200;
      r.slider = el("input", { type: "range", min: s.min, max: s.max, step: s.step ? Math.ceil(step / s.step) * s.step : step, "aria-label": s.name, title: limits,
        oninput: () => this.slide(r, put), onchange: () => this.slide(r, put) });
    }
    if (!r.switch) r.box ||= el("input", { type: "number", step: s.step || "any", min: s.min, max: s.max, placeholder: "set", "aria-label": `${s.name}, ${limits}`,
      onchange: () => { if (r.box.value !== "") put(Number(r.box.value)); } });
    r.release = el("button", { type: "button", class: "plain", disabled: true, onclick: () => change("release", { names: [s.name] }, s.name + " released") }, "release");
    r.root.classList.add(kind);
    r.root.append(...[r.switch, r.step, r.slider, r.box, r.release].filter(Boolean));
    if (kind === "value" && !r.slider) r.root.append(el("span", { class: "note" }, limits));
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
      const v = r.last = signals.values.get(name);
      text(r.value, textOf(r.signal, v) ?? (r.step && v === 0 ? "N" : Number.isInteger(r.signal.step) && Number.isInteger(v) ? mark(v) : number(v)));
      if (r.switch) {
        set(r.switch, "aria-checked", v === r.signal.max);
        text(r.switch, textOf(r.signal, v === r.signal.max ? v : r.signal.min) ?? (v === r.signal.max ? "on" : "off"));
      }
      if (r.box?.tagName === "SELECT" && document.activeElement !== r.box) r.box.value = choices(r.signal).some((t) => t.value === v) ? v : "";
      if (r.slider && !r.sending && document.activeElement !== r.slider && Number.isFinite(v)) r.slider.value = v;
    }
  }

  status(a) {
    this.ignition.hidden = !a.ignition;
    if (a.ignition && document.activeElement !== this.ignition) this.ignition.value = a.ignition;
    for (const [name, r] of this.rows) {
      const value = a.set?.[name];
      r.root.classList.toggle("set", value !== undefined);
      if (r.release) r.release.disabled = value === undefined;
      if (r.own) r.own.hidden = value !== undefined;
    }
  }
}

// Faults shows the faults of the run and puts in new ones.
export class Faults {
  constructor(root, description) {
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
    await change("fault", { arguments: words.filter(Boolean) }, "fault " + field("name"));
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
      const over = f.state === "over" || f.state === "cleared";
      return el("div", { class: "row fault " + f.state }, el("span", { class: "pill " + f.state }, f.state), el("span", { class: "name" }, f.name),
        el("code", {}, f.spec), el("span", { class: "number" }, [f.since_tick !== undefined && `since tick ${f.since_tick}`, f.count && `${f.count} times`].filter(Boolean).join(", ")),
        el("button", { type: "button", class: "plain", disabled: over, onclick: () => this.clear(f.name) }, "clear"));
    });
    if (!rows.length) rows.push(el("p", { class: "empty" }, "no fault"));
    const key = JSON.stringify(faults);
    if (key !== this.shown) this.list.replaceChildren(...rows);
    this.shown = key;
    this.active = faults.filter((f) => f.state === "active").length;
  }
}
