// The panel of the runs of this host.

import { get } from "./door.js";
import { el } from "./dom.js";
import { number } from "./units.js";

export class Runs {
  constructor(root) {
    this.root = root;
    this.list = el("div", { class: "rows" });
    root.append(el("div", { class: "head" }, el("h2", {}, "Runs of this host")), this.list);
    this.poll();
  }

  async poll() {
    if (this.root.offsetParent !== null && !document.hidden) {
      const a = await get("runs").catch(() => null);
      if (a) this.update(a.runs);
    }
    setTimeout(() => this.poll(), 3000);
  }

  update(list) {
    const rows = list.map((r) => {
      const here = r.page && new URL(r.page).searchParams.get("token") === new URLSearchParams(location.search).get("token");
      const facts = [r.buses.join(", "), r.supervisor ? `process ${r.supervisor}` : "", r.missed ? `missed ${r.missed}` : "", r.late_p99_ns ? `p99 ${number(r.late_p99_ns / 1e3, 3)} us` : "", r.hint];
      return el("div", { class: "row run" }, here || !r.page ? el("b", {}, r.bench) : el("a", { href: own(r.page) }, r.bench),
        el("span", { class: "pill " + (r.state === "running" ? "good" : "bad") }, r.state),
        el("span", { class: "note" }, here ? "this page" : r.page ? "" : "without a page"), el("span", { class: "note number" }, facts.filter(Boolean).join(" · ")));
    });
    const key = JSON.stringify(list.map((r) => [r.bench, r.state, r.page, r.missed]));
    if (key !== this.shown) this.list.replaceChildren(...rows); // not at each poll: a link may have the focus
    this.shown = key;
  }
}

// own returns the address of a page with the name by which this page was reached.
function own(page) {
  const u = new URL(page);
  u.hostname = location.hostname;
  return u.href;
}
