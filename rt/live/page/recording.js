// The record of the run: the head of the page starts and ends it.

import { change, el, text } from "./dom.js";

export class Recording {
  constructor(after, bench) {
    this.bench = bench;
    this.file = el("input", { type: "text", size: 36, hidden: true, "aria-label": "file of the new record on the host of the run", onkeydown: (e) => { if (e.key === "Enter") this.turn(); else if (e.key === "Escape") this.file.hidden = true; } });
    this.button = el("button", { type: "button", id: "recording", onclick: () => this.turn() }, "record…");
    after.after(this.button, this.file);
  }

  // propose returns a new name for a record.
  propose() {
    const folder = (this.last || "/tmp/").replace(/[^/]*$/, ""), time = new Date().toISOString().replace(/\D/g, "").slice(0, 14);
    return `${folder}${this.bench.replace(/[^\w.-]/g, "_")}-${time}.rec`;
  }

  // turn ends the record, asks for a file, or starts a record in it.
  async turn() {
    if (!this.record && this.file.hidden) {
      this.file.hidden = false;
      this.file.value = this.propose();
      this.file.focus();
      text(this.button, "start record");
      return;
    }
    this.button.disabled = true;
    const a = this.record ? await change("record", { on: false }, "record off") : await change("record", { on: true, file: this.file.value }, "record on");
    this.button.disabled = false;
    if (!a.error) this.status({ record: a.record });
  }

  // status shows the state of the run.
  status(s) {
    if (s.record) this.last = s.record, this.file.hidden = true;
    this.record = s.record;
    text(this.button, s.record ? "end record" : this.file.hidden ? "record…" : "start record");
    this.button.title = s.record || (s.record_refused ? `no record: ${s.record_refused}` : "");
    this.button.setAttribute("aria-pressed", Boolean(s.record));
  }
}
