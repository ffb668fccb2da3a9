// A record in the page: a bar that moves in its time. The door of a record describes its time.

import { get } from "./door.js";
import { el, text } from "./dom.js";

export class RecordBar {
  constructor(before, signals, scope, description) {
    this.signals = signals;
    this.scope = scope; // the first one; a second one shows the same time
    scope.seek = (t) => this.seek(t);
    this.record = description.record;
    this.period = description.period_s;
    this.at = this.record.to_s;
    signals.record = true;
    const length = this.record.to_s - this.record.from_s;
    scope.longest = Math.max(scope.longest, length);
    if (length > 0 && length < scope.span) scope.setSpan(length);
    document.body.classList.add("record");
    this.slider = el("input", { type: "range", min: this.record.from_s, max: this.record.to_s, step: this.period, value: this.at,
      "aria-label": "time in the record", oninput: () => this.seek(Number(this.slider.value)) });
    this.box = el("input", { type: "number", min: this.record.from_s, max: this.record.to_s, step: this.period,
      "aria-label": "time in the record, s", onchange: () => this.seek(Number(this.box.value)) });
    this.play = el("button", { type: "button", onclick: () => this.toggle() }, "Play");
    const names = this.record.files.map((f, i) => (i ? `2: ${f}` : f)).join(", ");
    before.before(el("div", { id: "record" }, el("strong", {}, "RECORD "), el("span", {}, names), this.play, this.slider, this.box, el("span", {}, "s")));
    signals.listeners.push((line) => {
      if (line.scrubbed) return;
      clearTimeout(this.later); // the samples of a stream are followed by the values at the chosen time
      this.later = setTimeout(() => this.seek(this.at), 100);
    });
  }

  toggle() {
    if (this.timer) {
      clearInterval(this.timer);
      this.timer = null;
    } else {
      if (this.at >= this.record.to_s) this.at = this.record.from_s;
      let before = performance.now();
      this.timer = setInterval(() => {
        const now = performance.now(), at = Math.min(this.at + (now - before) / 1000, this.record.to_s);
        before = now;
        this.seek(at);
        if (at >= this.record.to_s) this.toggle();
      }, 100);
    }
    text(this.play, this.timer ? "Pause" : "Play");
  }

  // seek shows the values at a time. While an answer is awaited, only the last time asked for is kept.
  async seek(at) {
    this.at = Math.min(Math.max(at, this.record.from_s), this.record.to_s);
    this.slider.value = this.at;
    this.box.value = this.at.toFixed(4);
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    try {
      const names = [...new Set([...this.signals.wants.values()].flat())];
      const a = await get("values?" + new URLSearchParams([...names.map((n) => ["signal", n]), ["at", this.at]]));
      for (const v of a.values) this.signals.values.set(v.name, v.value ?? NaN);
      this.signals.time = a.time_s;
      this.signals.tick = a.tick;
      const first = this.record.from_s + this.scope.span; // the window begins with the record, and ends with it if it is longer
      this.scope.held = Math.min(Math.max(a.time_s + this.scope.span / 2, first), Math.max(this.record.to_s, first));
      this.scope.cursors[0] = a.time_s;
      for (const f of this.signals.listeners) f({ scrubbed: true, tick: a.tick, time_s: a.time_s });
    } catch { /* the next move asks again */ } finally {
      this.busy = false;
      if (this.again) {
        this.again = false;
        this.seek(this.at);
      }
    }
  }
}
