// The panel of the scenario: its expectations as they are judged.

import { get } from "./door.js";
import { el, text } from "./dom.js";

export class Scenario {
  constructor(root) {
    this.root = root;
    this.count = el("span", { class: "note" });
    this.list = el("div", { class: "rows" });
    root.append(el("div", { class: "head" }, el("h2", {}, "Scenario"), this.count), this.list);
    this.broken = 0;
    this.poll();
  }

  async poll() {
    const a = await get("scenario").catch(() => null);
    if (a) this.update(a.expectations);
    setTimeout(() => this.poll(), a?.expectations.length ? 500 : 3000);
  }

  update(list) {
    const count = (s) => list.filter((e) => e.state === s).length;
    this.broken = count("broken");
    const skipped = count("skipped") ? `, ${count("skipped")} skipped` : "";
    text(this.count, list.length ? `${count("held")} held, ${this.broken} broken, ${count("open")} open${skipped}` : "");
    const key = JSON.stringify(list);
    if (key === this.shown) return;
    this.shown = key;
    const rows = list.map((e) => el("div", { class: "row " + e.state }, el("span", { class: "pill " + e.state }, e.state),
      el("span", { class: "name" }, e.what), el("span", { class: "note" }, (e.what === e.want ? "" : `expected ${e.want}; `) + e.seen)));
    this.list.replaceChildren(...(rows.length ? rows : [el("p", { class: "empty" }, "the run has no scenario: lockstep run BENCH -scenario FILE")]));
  }
}
