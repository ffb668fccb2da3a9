// The panel of the clock: ticks, latency, late ticks with their causes, and what the host lacks.

import { get } from "./door.js";
import { draggable, el, text } from "./dom.js";
import { number, quantity } from "./units.js";

const perDecade = 6, classCount = 32; // of the histograms, from 1 us to 0.1 s
const latency = ["health.wakeup_latency", "health.tick_time"];
const counts = ["missed", "late", "rx_frames", "rx_rejected", "tx_frames", "tx_dropped"].map((n) => "health." + n);
const titles = ["missed ticks", "late ticks", "frames received", "not decoded", "frames sent", "not taken by a bus"];

// Clock shows ticks, latency and their histograms since the page was opened.
export class Clock {
  constructor(root, signals, description) {
    this.period = description.period_s * 1e6; // us
    this.classes = latency.map(() => new Float64Array(classCount));
    this.largest = latency.map(() => 0);
    this.root = root;
    this.cells = counts.map(() => el("b", { class: "number" }, "–"));
    this.bars = latency.map(() => el("div", { class: "bars" }));
    this.ledgerList = el("div", { class: "rows" });
    this.heads = latency.map(() => el("span", { class: "number" }, "–"));
    root.append(el("div", { class: "head" }, el("h2", {}, "Clock"), el("span", { class: "note" }, `a tick each ${quantity(this.period / 1e3, "ms")}`)),
      el("div", { class: "counts" }, ...titles.map((t, i) => draggable(el("div", {}, this.cells[i], el("span", {}, t)), counts[i]))),
      el("div", { class: "histograms" }, ...["wake-up latency", "time of a tick"].map((t, i) =>
        draggable(el("figure", {}, el("figcaption", {}, t + " ", this.heads[i]), this.bars[i]), latency[i]))),
      el("h3", {}, "Late ticks, the latest first"), this.ledgerList);
    this.missing = el("div", { class: "missing" });
    this.host = el("div", { class: "host" });
    root.append(this.missing, this.host);
    signals.want("clock", [...latency, ...counts]);
    signals.listeners.push(() => this.sample(signals));
    setInterval(() => this.draw(signals), 500);
    this.poll();
  }

  sample(signals) {
    latency.forEach((name, i) => {
      const ring = signals.rings.get(name), v = ring && ring.max(ring.n - 1);
      if (!(v >= 0)) return;
      this.classes[i][Math.min(classCount - 1, Math.max(0, Math.round(perDecade * Math.log10(Math.max(v, 1)))))]++;
      this.largest[i] = Math.max(this.largest[i], v);
    });
  }

  draw(signals) {
    counts.forEach((n, i) => {
      const v = signals.values.get(n);
      text(this.cells[i], Number.isFinite(v) ? String(v) : "–");
      this.cells[i].parentElement.classList.toggle("bad", i !== 2 && i !== 4 && v > 0);
    });
    latency.forEach((name, i) => {
      const list = this.classes[i], most = Math.max(1, ...list);
      text(this.heads[i], `now ${quantity(signals.values.get(name), "us", 3)}, largest ${quantity(this.largest[i], "us", 3)}`);
      if (this.bars[i].children.length === 0) {
        this.bars[i].append(...[...list.keys()].map((k) => el("i", { title: `about ${number(10 ** (k / perDecade), 2)} us` })),
          ...[1, 10, 100, 1e3, 1e4].map((v) => el("em", {}, v < 1000 ? v + " us" : v / 1000 + " ms")));
        [...this.bars[i].querySelectorAll("em")].forEach((e, k) => { e.style.left = ((perDecade * k + 0.5) / classCount) * 100 + "%"; });
      }
      list.forEach((n, k) => { this.bars[i].children[k].style.height = n ? 4 + (Math.log1p(n) / Math.log1p(most)) * 56 + "px" : "0"; });
    });
  }

  // poll reads the ledger each second, and the judgement of the host each minute.
  async poll() {
    if (this.root.offsetParent !== null && !document.hidden) {
      const [ledger, host] = await Promise.all([get("ledger"), this.judged > performance.now() - 60000 ? null : get("host")]).catch(() => [null, null]);
      if (ledger) this.showLedger(ledger);
      if (host) this.showHost(host.checks);
    }
    setTimeout(() => this.poll(), 1000);
  }

  showLedger(a) {
    const key = a.late_ticks + " " + a.entries.length;
    if (key === this.shown) return;
    this.shown = key;
    const rows = a.entries.map((e) => el("div", { class: "row late" }, el("b", { class: "number" }, `${number(e.late_ns / 1e6, 3)} ms`), el("span", {}, e.text)));
    this.ledgerList.replaceChildren(...(rows.length ? rows : [el("p", { class: "empty" }, "none")]));
  }

  showHost(list) {
    this.judged = performance.now();
    const lacks = list.filter((c) => c.verdict !== "ok" && c.level !== "info");
    if (!list.length) return this.host.replaceChildren();
    const rows = lacks.map((c) => el("details", { class: "check " + c.level }, el("summary", {}, el("span", { class: "pill " + (c.level === "must" ? "bad" : "warn") }, c.level), " ", el("b", {}, c.name), " ", c.found),
      el("p", { class: "note" }, `wanted: ${c.wanted}. Why: ${c.why}.`), c.command && el("code", {}, c.command)));
    this.host.replaceChildren(el("h3", {}, `What lockstep doctor says about the host: ${list.length - lacks.length} of ${list.length} checks are in order`), ...rows);
  }

  status(a) {
    const list = a.best_effort || [];
    if (this.missing.children.length) return;
    if (list.length) this.missing.append(el("h3", {}, "What the run lacks for real time"), el("ul", {}, ...list.map((w) => el("li", {}, w))));
  }
}
