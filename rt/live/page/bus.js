// The panel of the buses: messages with their cycle, age and checks, and the bits of a frame.

import { get } from "./door.js";
import { draggable, el, set, text } from "./dom.js";
import { number, quantity, shown } from "./units.js";

// bitsOf returns the bits of a signal, the lowest value first or, in Motorola order, the highest first.
function bitsOf(s) {
  const list = [];
  for (let at = s.start; list.length < s.length; at += !s.big_endian ? 1 : at % 8 ? -1 : 15) list.push(at);
  return list;
}

const hex = (m) => m.id.toString(16).toUpperCase().padStart(m.extended ? 8 : 3, "0");
const ms = (ns) => (ns / 1e6).toFixed(ns < 1e8 ? 2 : 1);

export class Buses {
  constructor(root, signals, description, layout) {
    this.root = root;
    this.layout = layout;
    this.texts = new Map(description.signals.filter((s) => s.texts).map((s) => [s.name, s.texts]));
    this.rows = new Map(layout.messages.map((m) => [m.name, this.row(m)]));
    this.filter = el("input", { type: "search", placeholder: "filter", "aria-label": "filter messages", oninput: () => this.show() });
    this.buses = layout.buses.map((b) => el("span", { class: "bus number" }, b.name));
    this.bits = el("div", { class: "bits" });
    root.append(el("div", { class: "head" }, el("h2", {}, "Bus"), this.filter, ...this.buses),
      el("div", { class: "split" },
        el("div", { class: "messages", role: "table" },
          el("div", { class: "row names", role: "row" }, ...["message", "id", "frames", "cycle, ms", "jitter, ms", "age, ms", "state"].map((t) => el("span", { role: "columnheader" }, t))),
          ...[...this.rows.values()].map((r) => r.root)),
        this.bits));
    if (layout.messages.length) this.choose(layout.messages[0].name);
    else this.bits.append(el("p", { class: "empty" }, "the bench has no message"));
    this.poll();
  }

  row(m) {
    const cell = (c, t) => el("span", { class: "number " + c, role: "cell" }, t || "–");
    const r = { message: m, frames: cell("frames"), cycle: cell("cycle"), jitter: cell("jitter"), age: cell("age"), state: el("span", { class: "state", role: "cell" }, "") };
    const from = m.direction === "out" ? "sent by the bench" : "received";
    const title = `${from}${m.senders.length ? ", sender by the database: " + m.senders.join(", ") : ""}${m.protection ? ", " + m.protection.join(", ") : ""}${m.about ? "\n" + m.about : ""}`;
    r.root = el("div", { class: "row message", role: "row", tabindex: 0, title, onclick: () => this.choose(m.name),
      onkeydown: (e) => this.key(e, m.name) },
    el("span", { class: "name", role: "cell" }, el("i", { class: m.direction, "aria-label": from }, m.direction === "out" ? "▸" : "◂"), " ", m.name,
      el("small", {}, m.senders.length ? " " + m.senders.join(", ") : "")),
    cell("id", hex(m)), r.frames, r.cycle, r.jitter, r.age, r.state);
    return r;
  }

  key(e, name) {
    const list = [...this.rows].filter(([, r]) => !r.root.hidden).map(([n]) => n);
    const to = { ArrowDown: 1, ArrowUp: -1, Enter: 0 }[e.key];
    if (to === undefined) return;
    const next = list[Math.max(0, Math.min(list.length - 1, list.indexOf(name) + to))];
    this.choose(next);
    this.rows.get(next).root.focus();
    e.preventDefault();
  }

  show() {
    const typed = this.filter.value.toLowerCase();
    for (const r of this.rows.values()) {
      const m = r.message, all = [m.name, hex(m), m.bus, ...m.senders, ...m.signals.map((s) => s.name)].join(" ").toLowerCase();
      r.root.hidden = !all.includes(typed);
    }
  }

  // choose shows the bits of a message.
  choose(name) {
    this.chosen = name;
    for (const [n, r] of this.rows) set(r.root, "aria-selected", n === name);
    const m = this.rows.get(name).message;
    this.cells = Array.from({ length: 8 * m.length }, () => el("td", {}, "·"));
    m.signals.forEach((s, k) => bitsOf(s).forEach((b, i) => {
      const c = this.cells[b];
      if (!c) return;
      c.classList.add("used", "k" + (k % 8));
      const lowest = s.big_endian ? i === s.length - 1 : i === 0, highest = s.big_endian ? i === 0 : i === s.length - 1;
      if (lowest) c.classList.add("lowest");
      if (highest) c.classList.add("highest");
      (c.names ||= []).push(s.name);
      c.title = `${c.names.join(", ")}: bit ${b}${highest ? ", highest" : ""}${lowest ? ", lowest" : ""}`;
    }));
    const bytes = Array.from({ length: m.length }, (_, b) => el("tr", {}, el("th", {}, String(b)),
      ...Array.from({ length: 8 }, (_, i) => this.cells[8 * b + 7 - i]), el("td", { class: "hex number" }, "")));
    this.hex = bytes.map((r) => r.lastChild);
    this.values = m.signals.map((s, k) => {
      const value = el("b", { class: "number" }, "–");
      const name = el("span", { class: "name", title: [s.carries, s.muxed_by && `if ${s.muxed_by} is ${(s.ranges || []).map((r) => r.join(" to ")).join(", ")}`].filter(Boolean).join("\n") },
        el("i", { class: "k" + (k % 8) }), s.name);
      if (s.signal) draggable(name, s.signal);
      return { value, root: el("div", { class: "row" }, name, value, el("span", { class: "unit" }, shown(s.unit)), el("span", { class: "note" }, s.carries || "")) };
    });
    const facts = [m.bus, hex(m) + (m.extended ? " (29 bits)" : ""), `${m.length} bytes${m.fd ? ", CAN FD" : ""}`, m.direction === "out" ? "sent by the bench" : "received",
      m.senders.length && "sender " + m.senders.join(", "), m.cycle_s && "cycle " + quantity(m.cycle_s * 1e3, "ms"), m.timeout_s && "timeout " + quantity(m.timeout_s * 1e3, "ms"), m.protection?.join(", ")];
    this.frame = el("p", { class: "note number" }, "no frame yet");
    this.bits.replaceChildren(el("h3", {}, m.name), el("p", { class: "note" }, facts.filter(Boolean).join(" · ")), this.frame,
      el("div", { class: "layout" },
        el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, ""), ...[7, 6, 5, 4, 3, 2, 1, 0].map((b) => el("th", {}, String(b))), el("th", {}, ""))), el("tbody", {}, ...bytes)),
        el("div", { class: "values" }, ...this.values.map((v) => v.root))));
    const last = this.rows.get(name).last;
    if (last) this.showFrame(last);
  }

  showFrame(f) {
    const m = this.rows.get(f.message).message;
    const fates = [f.dropped && "not taken by the bus", f.withheld && "kept back by a fault", f.again && "late or again by a fault", f.safe && "safe values"].filter(Boolean);
    text(this.frame, `tick ${f.tick}, ${f.time_s.toFixed(3)} s` + (fates.length ? ": " + fates.join(", ") : ""));
    this.frame.classList.toggle("bad", fates.length > 0);
    for (let b = 0; b < m.length; b++) {
      const byte = f.data.slice(2 * b, 2 * b + 2);
      text(this.hex[b], byte.toUpperCase());
      for (let i = 0; i < 8; i++) {
        const c = this.cells[8 * b + i], value = byte ? String((parseInt(byte, 16) >> i) & 1) : "·";
        text(c, value);
        c.classList.toggle("one", value === "1");
      }
    }
    this.values.forEach((v, i) => {
      const value = f.values?.[i], s = m.signals[i];
      const known = this.texts.get(s.signal)?.find((t) => t.value === value);
      text(v.value, value === null || value === undefined ? "–" : known ? known.text : number(value, 6));
      v.root.classList.toggle("absent", value === null || value === undefined);
    });
  }

  // poll asks for all messages with their last frames: a stream for each page would take the few connections that a
  // browser opens to one host.
  async poll() {
    if (this.root.offsetParent !== null && !document.hidden) { // else the panel is not visible
      const a = await get("messages").catch(() => null);
      if (a) this.update(a);
    }
    setTimeout(() => this.poll(), 400);
  }

  update(a) {
    a.buses.forEach((b, i) => {
      const load = b.load === undefined ? "load not known (bitrate: in the bench file)" : `load ${number(100 * b.load, 3)} %`;
      const errors = [b.state, b.error_frames && `${b.error_frames} error frames`, b.tx_errors !== undefined && `errors ${b.tx_errors} sending, ${b.rx_errors} receiving`];
      text(this.buses[i], [`${b.name}: ${number(b.frames_per_s, 3)} frames/s`, load, ...errors].filter(Boolean).join(", "));
      this.buses[i].classList.toggle("bad", Boolean(b.state && !["up", "error-active"].includes(b.state)));
    });
    for (const v of a.messages) {
      const r = this.rows.get(v.name), m = r.message;
      r.last = v.last;
      if (v.last && v.name === this.chosen) this.showFrame(v.last);
      text(r.frames, String(v.frames));
      text(r.cycle, v.cycle_ns ? ms(v.cycle_ns.mean) : "–");
      set(r.cycle, "title", v.cycle_ns ? `${ms(v.cycle_ns.min)} to ${ms(v.cycle_ns.max)} ms` + (m.cycle_s ? `, wanted ${quantity(m.cycle_s * 1e3, "ms")}` : "") : "");
      text(r.jitter, v.cycle_ns ? ms(v.cycle_ns.jitter) : "–");
      text(r.age, v.age_s === undefined ? "never" : String(Math.round(v.age_s * 1e3)));
      const old = v.late || (m.cycle_s && v.age_s > 5 * m.cycle_s);
      r.age.classList.toggle("bad", Boolean(old));
      const state = [v.late && "timeout", v.window, v.state && v.state !== "OK" && v.state, ...v.problems].filter(Boolean);
      text(r.state, state.join(", "));
      r.state.classList.toggle("bad", v.late || v.window === "INVALID" || ["ERROR", "REPEATED", "WRONGSEQUENCE"].includes(v.state));
      r.state.classList.toggle("good", v.window === "VALID" && v.problems.length === 0);
    }
  }
}
