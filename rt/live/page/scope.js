// The oscilloscope: signals over time.

import { canvasContext, drawing, plot } from "./plot.js";
import { el, say, text } from "./dom.js";
import { alternatives, factor, number, shown } from "./units.js";

const windows = [1, 2, 5, 10, 20, 60, 300]; // s
const colours = 8;

export class Scope {
  constructor(root, signals, description, beside) {
    this.signals = signals;
    this.time = beside?.time || { span: 10, longest: 300, held: null, cursors: [null, null], scopes: [] }; // of all scopes side by side
    this.time.scopes.push(this);
    this.ranges = new Map(); // unit -> least and largest value in the window
    this.byName = new Map(description.signals.map((s) => [s.name, s]));
    this.bench = description.bench;
    this.title = description.title || "Scope";
    this.traces = []; // {name, unit, colour}
    this.trigger = null; // {name, rising, level}, or null
    this.build(root, description);
    this.load(description);
    signals.listeners.push(() => { this.fresh = true; this.checkTrigger(); });
    const frame = () => {
      this.draw();
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  // The window and the cursors are those of all scopes side by side: length of the window, the longest one, its end when
  // paused, and the cursors, s.
  get span() { return this.time.span; }
  set span(s) { this.time.span = s; this.redraw(); }
  get longest() { return this.time.longest; }
  set longest(s) { this.time.longest = s; }
  get held() { return this.time.held; }
  set held(t) { this.time.held = t; this.redraw(); }
  get cursors() { return this.time.cursors; }
  redraw() { for (const s of this.time.scopes) s.fresh = true; }

  build(root, description) {
    const list = el("datalist", { id: root.id + "-signals" }, ...description.signals.map((s) => el("option", { value: s.name })));
    this.add = el("input", { type: "text", list: root.id + "-signals", placeholder: "add a signal", "aria-label": "add a signal", autocomplete: "off",
      onchange: () => this.addTyped(), onkeydown: (e) => { if (e.key === "Enter") this.addTyped(); } });
    this.pause = el("button", { type: "button", onclick: () => this.togglePause() }, "Pause");
    this.spanBox = el("select", { "aria-label": "window", onchange: () => this.setSpan(Number(this.spanBox.value)) });
    this.everyBox = el("select", { "aria-label": "samples", onchange: () => { this.signals.setEvery(this.everyBox.value); this.save(); } },
      el("option", { value: "tick" }, "each tick"), ...["20ms", "100ms"].map((v) => el("option", { value: v }, "each " + v.replace("ms", " ms"))));
    this.everyBox.value = "20ms";
    const saves = ["CSV", "SVG", "PNG"].map((k) => el("button", { type: "button", title: "save what is shown as " + k, onclick: () => this.saveAs(k) }, k));
    this.buildTrigger();
    this.legend = el("div", { class: "legend" });
    this.canvas = el("canvas", { tabindex: 0, "aria-label": "oscilloscope; space pauses, + and - zoom, arrows move" });
    this.readout = el("div", { class: "readout number" });
    root.append(
      el("div", { class: "head" }, el("h2", {}, this.title), this.add, list, el("span", { class: "buttons" }, this.pause, this.spanBox, this.everyBox),
        this.triggerBox, el("span", { class: "buttons" }, ...saves)),
      this.legend, el("div", { class: "canvas" }, this.canvas), this.readout);
    this.setSpan(this.span);
    root.addEventListener("dragover", (e) => e.preventDefault());
    root.addEventListener("drop", (e) => {
      e.preventDefault();
      this.addSignal(e.dataTransfer.getData("text/plain"));
    });
    this.listen();
  }

  buildTrigger() {
    this.triggerName = el("select", { "aria-label": "trigger signal", onchange: () => this.arm() });
    this.triggerEdge = el("select", { "aria-label": "trigger edge", onchange: () => this.arm() },
      el("option", { value: "up" }, "rises over"), el("option", { value: "down" }, "falls below"));
    this.triggerLevel = el("input", { type: "number", step: "any", value: 0, "aria-label": "trigger level", onchange: () => this.arm() });
    this.triggerBox = el("span", { class: "buttons trigger" }, this.triggerName, this.triggerEdge, this.triggerLevel);
  }

  listen() {
    const c = this.canvas;
    let start = null;
    const at = (e) => this.area.time(e.offsetX);
    c.addEventListener("wheel", (e) => {
      e.preventDefault();
      this.zoom(e.deltaY < 0 ? 1 / 1.25 : 1.25, this.held === null ? undefined : at(e));
    }, { passive: false });
    c.addEventListener("pointerdown", (e) => { c.setPointerCapture(e.pointerId); start = { t: at(e), x: e.offsetX, held: this.held, shift: e.shiftKey }; });
    c.addEventListener("pointermove", (e) => {
      if (!start) return;
      if (start.shift && this.held !== null) this.held = start.held - ((e.offsetX - start.x) / this.area.width) * this.span;
      this.selected = start.shift ? null : [start.t, at(e)];
      this.fresh = true;
    });
    c.addEventListener("pointerup", (e) => {
      if (!start) return;
      const dragged = Math.abs(e.offsetX - start.x) > 6;
      if (dragged && !start.shift) this.showRange(start.t, at(e));
      if (!dragged) this.setCursor(e.shiftKey ? 1 : 0, at(e));
      start = this.selected = null;
      this.fresh = true;
    });
    c.addEventListener("dblclick", () => this.reset());
    c.addEventListener("keydown", (e) => {
      const keys = {
        " ": () => this.togglePause(), "+": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.reset(),
        ArrowLeft: () => this.move(-0.1), ArrowRight: () => this.move(0.1),
        a: () => this.setCursor(0, this.end() - this.span * 0.6), b: () => this.setCursor(1, this.end() - this.span * 0.3),
      };
      if (!keys[e.key]) return;
      keys[e.key]();
      e.preventDefault();
    });
  }

  addTyped() {
    const typed = this.add.value.trim().toLowerCase();
    if (!typed) return;
    const names = [...this.byName.keys()];
    const name = names.find((n) => n.toLowerCase() === typed) || names.find((n) => n.toLowerCase().includes(typed));
    if (name) this.addSignal(name);
    else say("there is no signal with " + this.add.value, true);
    this.add.value = "";
  }

  addSignal(name, unit) {
    const s = this.byName.get(name);
    if (!s || this.traces.some((t) => t.name === name)) return;
    const used = new Set(this.traces.map((t) => t.colour));
    const colour = [...Array(colours).keys()].find((i) => !used.has(i)) ?? this.traces.length % colours;
    this.traces.push({ name, unit: unit || s.unit, colour });
    this.changed();
  }

  remove(name) {
    this.traces = this.traces.filter((t) => t.name !== name);
    this.changed();
  }

  changed() {
    this.signals.want("scope", this.traces.map((t) => t.name));
    this.legend.replaceChildren(...this.traces.map((t) => {
      const s = this.byName.get(t.name);
      const units = alternatives(s.unit);
      const unit = units.length < 2 ? el("span", {}, shown(s.unit))
        : el("select", { "aria-label": "unit of " + t.name, onchange: (e) => { t.unit = e.target.value; this.save(); this.fresh = true; } },
          ...units.map((u) => el("option", { value: u, selected: u === t.unit }, shown(u) || "1")));
      t.value = el("b", { class: "number" }, "–");
      return el("span", { class: "trace c" + t.colour }, el("i", {}), t.name + " ", t.value, " ", unit,
        el("button", { type: "button", class: "plain", "aria-label": "remove " + t.name, onclick: () => this.remove(t.name) }, "×"));
    }));
    const chosen = this.triggerName.value;
    this.triggerName.replaceChildren(el("option", { value: "" }, "no trigger"), ...this.traces.map((t) => el("option", { value: t.name }, t.name)));
    this.triggerName.value = this.traces.some((t) => t.name === chosen) ? chosen : "";
    this.arm();
  }

  // arm sets the trigger from its boxes and lets the picture run until it is met.
  arm() {
    this.trigger = null;
    if (this.triggerName.value) {
      this.trigger = { name: this.triggerName.value, rising: this.triggerEdge.value === "up", level: Number(this.triggerLevel.value) };
      this.setHeld(null);
    }
    this.triggerBox.classList.toggle("armed", this.trigger !== null);
    this.triggered = null;
    this.save();
  }

  // checkTrigger looks at the last sample. The window ends three quarters after the crossing.
  checkTrigger() {
    if (this.triggered) {
      if (this.signals.time >= this.triggered + 0.75 * this.span) {
        this.setHeld(this.triggered + 0.75 * this.span);
        this.cursors[0] = this.triggered;
        this.triggered = this.trigger = null;
        this.triggerBox.classList.remove("armed");
        say("the trigger has stopped the picture; choose it again to arm it");
      }
      return;
    }
    const ring = this.trigger && this.signals.rings.get(this.trigger.name);
    if (!ring || ring.n < 2 || this.held !== null) return;
    const trace = this.traces.find((t) => t.name === this.trigger.name);
    const scale = factor(this.byName.get(trace.name).unit, trace.unit), k = ring.n - 1;
    const before = ring.last(k - 1) * scale;
    const met = this.trigger.rising ? before <= this.trigger.level && ring.max(k) * scale > this.trigger.level
      : before >= this.trigger.level && ring.min(k) * scale < this.trigger.level;
    if (met) this.triggered = ring.time(k);
  }

  end() { return this.held ?? this.signals.time; }
  togglePause() { this.setHeld(this.held === null ? this.signals.time : null); }
  setHeld(t) {
    this.held = t;
    for (const s of this.time.scopes) {
      text(s.pause, t === null ? "Pause" : "Go on");
      s.pause.classList.toggle("on", t !== null);
    }
  }
  setSpan(s) {
    this.span = Math.min(this.longest, Math.max(0.02, s));
    const list = windows.includes(this.span) ? windows : [...windows, this.span].sort((a, b) => a - b);
    for (const o of this.time.scopes) o.spanBox?.replaceChildren(...list.map((w) => el("option", { value: w, selected: w === this.span }, number(w, 3) + " s")));
    this.save();
  }
  zoom(by, around) {
    const before = this.span;
    this.setSpan(this.span * by);
    if (around !== undefined) this.held = around + ((this.held - around) * this.span) / before;
  }
  showRange(a, b) {
    this.setHeld(Math.max(a, b));
    this.setSpan(Math.abs(b - a));
  }
  move(by) {
    if (this.held === null) this.setHeld(this.signals.time);
    this.setHeld(this.held + by * this.span);
  }
  reset() {
    this.setHeld(null);
    this.cursors.fill(null);
    this.setSpan(10);
  }
  setCursor(i, t) {
    this.cursors[i] = t;
    this.redraw();
    if (i === 0) this.time.scopes[0].seek?.(t); // the time of a record
  }

  // look returns the colours of the page.
  look() {
    const css = getComputedStyle(document.documentElement);
    const get = (n) => css.getPropertyValue(n).trim();
    return { back: get("--panel"), grid: get("--grid"), text: get("--dim"), traces: [...Array(colours).keys()].map((i) => get("--c" + i)) };
  }

  plotted(look) {
    return this.traces.filter((t) => this.signals.rings.has(t.name)).map((t) => ({
      ring: this.signals.rings.get(t.name), scale: factor(this.byName.get(t.name).unit, t.unit), unit: t.unit, colour: look.traces[t.colour], name: t.name,
    }));
  }

  draw() {
    const size = { width: this.canvas.parentElement.clientWidth, height: this.canvas.parentElement.clientHeight };
    if (!this.fresh && this.width === size.width && this.height === size.height || size.width < 50) return;
    this.fresh = false;
    [this.width, this.height] = [size.width, size.height];
    this.canvas.style.width = size.width + "px";
    this.canvas.style.height = size.height + "px";
    const look = this.look(), t1 = this.end(), g = canvasContext(this.canvas, size);
    const before = JSON.stringify([...this.ranges]), others = this.time.scopes.filter((s) => s !== this);
    this.area = plot(g, size, this.plotted(look), t1 - this.span, t1, look, this.ranges, others.map((s) => s.ranges));
    if (JSON.stringify([...this.ranges]) !== before) for (const s of others) s.fresh = true; // they have the same axes
    if (this.traces.length === 0) {
      g.fillStyle = look.text;
      g.textAlign = "center";
      g.fillText("type the name of a signal above, or drag one here", size.width / 2, size.height / 2);
    }
    this.drawCursors(g, look);
    this.readValues();
  }

  drawCursors(g, look) {
    const { x, top, height } = this.area;
    this.cursors.forEach((t, i) => {
      if (t === null || t < this.end() - this.span || t > this.end()) return;
      g.strokeStyle = g.fillStyle = look.text;
      g.setLineDash([4, 3]);
      g.beginPath();
      g.moveTo(x(t), top);
      g.lineTo(x(t), top + height);
      g.stroke();
      g.setLineDash([]);
      g.textAlign = "left";
      g.fillText("AB"[i], x(t) + 3, top + 10);
    });
    if (this.selected) {
      g.fillStyle = look.grid;
      const [a, b] = this.selected.map(x).sort((p, q) => p - q);
      g.fillRect(a, top, b - a, 3);
    }
  }

  // valueAt returns the value of a trace at a time, in its unit.
  valueAt(trace, t) {
    const ring = this.signals.rings.get(trace.name);
    if (!ring) return NaN;
    const k = ring.after(t) - 1;
    return k < ring.first ? NaN : ring.last(k) * factor(this.byName.get(trace.name).unit, trace.unit);
  }

  readValues() {
    const [a, b] = this.cursors;
    for (const t of this.traces) text(t.value, number(this.valueAt(t, this.signals.record ? this.signals.time : this.end())));
    if (a === null && b === null) return text(this.readout, "");
    const parts = this.traces.map((t) => {
      const va = a === null ? NaN : this.valueAt(t, a), vb = b === null ? NaN : this.valueAt(t, b);
      const list = [a !== null && "A " + number(va), b !== null && "B " + number(vb), a !== null && b !== null && "B−A " + number(vb - va)];
      return `${t.name} ${list.filter(Boolean).join(", ")} ${shown(t.unit)}`;
    });
    const times = [a !== null && `A ${a.toFixed(3)} s`, b !== null && `B ${b.toFixed(3)} s`, a !== null && b !== null && `B−A ${number((b - a) * 1e3)} ms`];
    text(this.readout, [times.filter(Boolean).join(", "), ...parts].join("   "));
  }

  saveAs(kind) {
    if (kind === "CSV") return this.download(new Blob([this.csv()], { type: "text/csv" }), "csv");
    const size = { width: this.width, height: this.height }, look = this.look(), t1 = this.end();
    const names = this.traces.map((t) => `${t.name}[${t.unit}]`).join("  ");
    if (kind === "SVG") {
      const g = drawing(size.width, size.height + 20);
      plot(g, size, this.plotted(look), t1 - this.span, t1, look);
      g.fillStyle = look.text;
      g.fillText(names, 8, size.height + 14);
      return this.download(new Blob([g.text()], { type: "image/svg+xml" }), "svg");
    }
    this.canvas.toBlob((b) => this.download(b, "png"));
  }

  // csv returns what is shown in the form of lockstep's CSV files: last, least and largest value of each sample.
  csv() {
    const traces = this.plotted(this.look()), t1 = this.end(), t0 = t1 - this.span;
    const head = ["time[s]", ...traces.flatMap((t) => ["", ".min", ".max"].map((k) => `${t.name}${k}[${t.unit}]`))];
    const rows = new Map();
    traces.forEach((t, i) => {
      for (let k = Math.max(t.ring.first, t.ring.after(t0)); k < t.ring.n && t.ring.time(k) <= t1; k++) {
        const time = t.ring.time(k), row = rows.get(time) || Array(3 * traces.length).fill("");
        const cell = (v) => (Number.isNaN(v) ? "" : String(Number((v * t.scale).toPrecision(7))));
        row.splice(3 * i, 3, cell(t.ring.last(k)), cell(t.ring.min(k)), cell(t.ring.max(k)));
        rows.set(time, row);
      }
    });
    const times = [...rows.keys()].sort((p, q) => p - q);
    return [head.join(","), ...times.map((t) => [t, ...rows.get(t)].join(","))].join("\n") + "\n";
  }

  download(blob, end) {
    const a = el("a", { href: URL.createObjectURL(blob), download: `${this.bench}-${this.end().toFixed(2)}s.${end}` });
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10000);
  }

  // save keeps the choice of signals and the trigger, and load takes them back.
  save() {
    if (!this.loaded) return;
    const kept = { traces: this.traces.map(({ name, unit }) => ({ name, unit })), span: this.span, every: this.signals.every,
      trigger: { name: this.triggerName.value, edge: this.triggerEdge.value, level: this.triggerLevel.value } };
    try { localStorage.setItem("scope " + this.bench, JSON.stringify(kept)); } catch { /* a browser without storage */ }
  }
  load(description) {
    let kept = null;
    try { kept = JSON.parse(localStorage.getItem("scope " + this.bench)); } catch { /* none */ }
    if (kept?.traces?.length) {
      this.signals.every = this.everyBox.value = kept.every;
      this.setSpan(kept.span);
      for (const t of kept.traces) this.addSignal(t.name, t.unit);
      if (kept.trigger) {
        [this.triggerName.value, this.triggerEdge.value, this.triggerLevel.value] = [kept.trigger.name, kept.trigger.edge, kept.trigger.level];
        this.arm();
      }
    } else {
      const speeds = description.signals.filter((s) => s.kind === "output" && ["rpm", "rad/s", "m/s", "km/h"].includes(s.unit) && !/\.w_rel$/.test(s.name));
      for (const s of (speeds.length ? speeds : description.signals.filter((o) => o.kind === "output")).slice(0, 4)) this.addSignal(s.name);
    }
    this.loaded = true;
  }
}
