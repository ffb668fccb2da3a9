// The picture of the plant: bars are shafts, between them are gears, clutches and other elements.

import { columns, list, place } from "./layout.js";
import { draggable, el, set, svg, text } from "./dom.js";
import { number, quantity } from "./units.js";

const narrow = 620; // width in px below which the flow runs downwards
const legible = 0.7; // least scale of a picture
const many = 40; // nodes from which a plant is drawn by its assemblies

const parent = (name) => name.slice(0, Math.max(0, name.lastIndexOf(".")));
const short = (name) => name.slice(name.lastIndexOf(".") + 1);

// calm returns 0 for a value that is no more than what rounding leaves.
const calm = (v) => (Math.abs(v) < 5e-4 ? 0 : v);

// isSource reports whether an element drives the plant.
const isSource = (e) => /engine|motor|^(torque|force|speed|position|acceleration)$/.test(e.type);

// isClutch reports whether an element is drawn as plates: a clutch, a brake, a freewheel or a contact with friction. The
// rolling resistance of a vehicle is none.
const isClutch = (e) => e.friction && !/vehicle/.test(e.type);

export class PlantPicture {
  constructor(root, signals, description, plant) {
    this.signals = signals;
    this.plant = plant;
    this.byName = new Map(description.signals.map((s) => [s.name, s]));
    this.most = 1; // power of a line of full width, W
    this.canvas = el("div", { class: "picture" });
    this.detail = el("div", { class: "detail" }, "Point at a part for its numbers.");
    const legend = el("span", { class: "key" }, ...[["locked", "L", "locked"], ["slipping", "S", "slips"], ["open", "O", "open"]].map(([c, l, t]) =>
      el("span", { class: c }, el("b", {}, l), " " + t)), el("span", {}, "width: power"));
    this.total = el("span", { class: "total number" });
    this.summary = el("p", { class: "summary", "aria-label": "state of the drivetrain" });
    root.append(el("div", { class: "head" }, el("h2", {}, description.title || "Drivetrain"), this.total, legend), this.summary, this.canvas, this.detail);
    signals.want("plant", this.wanted());
    signals.listeners.push(() => { this.fresh = true; });
    new ResizeObserver(() => requestAnimationFrame(() => this.rebuild())).observe(this.canvas);
    setInterval(() => { if (this.fresh) this.update(); this.fresh = false; }, 100);
  }

  // wanted returns the signals of the picture.
  wanted() {
    const names = new Set();
    const add = (terms) => (terms || []).forEach((t) => names.add(t.signal));
    for (const n of this.plant.nodes) add(n.speed);
    for (const e of this.plant.elements) {
      if (e.friction) for (const k of [".mode", ".w_rel", ".tau"]) names.add(e.name + k);
      for (const f of e.flanges) add(f.torque);
    }
    return [...names].filter((n) => this.byName.has(n));
  }

  // sum returns the value of a sum over signals, SI; NaN: not known.
  sum(terms) {
    if (!terms) return NaN;
    let v = 0;
    for (const t of terms) v += t.factor * (t.rate ? this.rate(t.signal) : this.signals.values.get(t.signal) ?? NaN);
    return v;
  }

  // rate returns the rate of a signal over the last tenth of a second, per second.
  rate(name) {
    const ring = this.signals.rings.get(name);
    if (!ring || ring.n < 2) return NaN;
    const k = ring.after(this.signals.time + 1e-9) - 1, before = Math.max(ring.first, ring.after(ring.time(k) - 0.1));
    return before < k ? (ring.last(k) - ring.last(before)) / (ring.time(k) - ring.time(before)) : NaN;
  }

  speed(node) {
    const n = this.plant.nodes[node];
    return !n || n.type === "fixed" ? 0 : this.sum(n.speed);
  }

  // speedText formats the speed of a node.
  speedText(node) {
    const n = this.plant.nodes[node], v = this.speed(node);
    return n.moves ? quantity(calm(v * 3.6), "km/h") : quantity(calm((v * 30) / Math.PI), "rpm");
  }

  // state returns locked, slipping or open, its letter, and its text.
  state(e) {
    const v = this.signals.values.get(e.name + ".mode");
    const known = this.byName.get(e.name + ".mode")?.texts?.find((t) => t.value === v)?.text || "";
    if (/stuck|lock/.test(known)) return ["locked", "L"];
    if (/free|open/.test(known)) return ["open", "O"];
    const overruns = /one_way|freewheel/.test(e.type) && !calm(this.signals.values.get(e.name + ".tau"));
    return !known ? ["unknown", "?"] : overruns ? ["open", "O"] : ["slipping", "S"];
  }

  // rebuild draws the picture for the width of the page. The flow runs to the right if the picture is then large enough
  // to read, else downwards, and the panel is beside the others.
  rebuild() {
    const whole = document.querySelector("main").clientWidth, pair = document.body.classList.contains("pair");
    const page = pair && whole >= narrow ? whole / 2 : whole; // room for the picture
    if (this.canvas.clientWidth < 50) return;
    if (page !== this.page) {
      this.page = page;
      const wide = page < narrow ? Infinity : this.draw(false), across = page < wide * legible;
      document.body.classList.toggle("long", !pair && !across && wide > 1100);
      document.body.classList.toggle("tall", !pair && across && this.plant.nodes.length <= many);
      if (across) this.draw(true);
      this.fitted = 0;
    }
    for (let i = 0; i < 3 && this.fitted !== this.canvas.clientWidth; i++) this.fit(); // a scroll bar changes the width
  }

  // draw draws the picture and returns its width at scale 1. across: the flow runs downwards.
  draw(across) {
    this.across = across;
    this.parts = []; // functions that update the picture
    const grouped = this.plant.nodes.length > many;
    const graph = grouped ? this.groups() : this.shafts();
    this.edges = graph.edges;
    const lane = across ? 104 : 64;
    const size = !grouped ? place(graph.vertices, graph.edges, graph.root, lane, across ? 16 : 36)
      : across ? list(graph.vertices, graph.edges, graph.root, 16, 12) : columns(graph.vertices, graph.edges, graph.root, 16, 12);
    this.ends = [graph.root, this.sink(graph)];
    const margin = across ? { x: 10, y: 10 } : { x: 34, y: grouped ? 10 : 40 };
    this.at = across ? (u, v) => [v + margin.x, u + margin.y] : (u, v) => [u + margin.x, v + margin.y];
    const [w, h] = this.at(size.u, size.v).map((x, i) => x + [margin.x, margin.y][i]);
    this.picture = svg("svg", { role: "img", "aria-label": "drivetrain" });
    this.flows = this.picture.appendChild(svg("g", {})); // below the symbols and the names
    this.names = svg("g", {}); // above the boxes
    for (const e of graph.edges) this.drawEdge(this.picture, e);
    for (const v of graph.vertices) this.drawVertex(this.picture, v);
    this.picture.append(this.names);
    this.canvas.replaceChildren(this.picture);
    const box = this.picture.getBBox(), x = Math.min(0, box.x - 4); // with the names at the edges, which get a letter
    this.size = { x, width: Math.max(w, box.x + box.width + 30) - x, height: Math.max(h, box.y + box.height + 8) };
    this.update();
    return this.size.width;
  }

  // fit scales the picture to its panel.
  fit() {
    const { x, width, height } = this.size, panel = this.canvas;
    this.fitted = panel.clientWidth;
    const most = this.across && document.body.classList.contains("tall") ? 1.2 : 1.5;
    const scale = Math.min(most, Math.max(this.across ? 0.4 : 0.55, Math.min(panel.clientWidth / width, Math.max(1, panel.clientHeight / height))));
    for (const [name, value] of [["viewBox", `${x} 0 ${width} ${height}`], ["width", width * scale], ["height", height * scale]]) set(this.picture, name, value);
  }

  // sink returns the vertex at which the flow of power ends: a load or a vehicle, else the one farthest from the root.
  sink({ vertices, edges, root }) {
    const load = (v) => v.kind === "end" && !v.source;
    const last = vertices.filter((v) => v.kind === "bar" && v !== root).sort((a, b) => (b.u || 0) - (a.u || 0));
    const moving = last.find((v) => this.plant.nodes[v.node].moves);
    const end = vertices.filter(load).sort((a, b) => (b.u || 0) - (a.u || 0))[0];
    const body = vertices.find((v) => v.nodes?.some((n) => this.plant.nodes[n].moves)); // of a train
    return moving || (end && edges.find((e) => e.b === end)?.a) || last[0] || body;
  }

  // shafts returns the graph of a small plant: a vertex per shaft, per element at three or more shafts, and
  // per element at one shaft.
  shafts() {
    const { nodes, elements } = this.plant;
    const fixed = (n) => n < 0 || nodes[n].type === "fixed";
    const across = this.across;
    const vertex = nodes.map((n, i) => ({ kind: "bar", node: i, name: n.name, thick: across ? 20 : 12, span: across ? Math.max(130, 96 + 7 * short(n.name).length) : 34, also: [] }));
    const vertices = [], edges = [];
    for (const e of elements) {
      const ends = e.flanges.filter((f) => !fixed(f.node));
      const inside = [...new Set(ends.map((f) => f.node))];
      if (inside.length === 0 || (inside.length === 1 && ends.every((f) => !f.key))) continue; // a shaft itself
      if (inside.length === 1 && !e.friction && !isSource(e) && !/vehicle|load/.test(e.type)) {
        vertex[inside[0]].also.push(e);
        continue;
      }
      if (inside.length === 2) {
        edges.push({ a: vertex[inside[0]], b: vertex[inside[1]], elements: [e] });
        continue;
      }
      const source = isSource(e) || /vehicle|load/.test(e.type);
      const v = { kind: inside.length > 2 ? "box" : source ? "end" : "ground", element: e, name: e.name, source: isSource(e) && inside.length === 1,
        thick: !source && inside.length < 2 ? 24 : across ? (inside.length > 2 ? 66 : 40) : Math.max(90, 7 * e.type.length + 16), span: across ? (inside.length > 2 ? 170 : 100) : inside.length > 2 ? 84 : 40 };
      vertices.push(v);
      for (const n of inside) edges.push({ a: vertex[n], b: v, elements: e.friction ? [e] : [], of: e });
    }
    const used = () => new Set(edges.flatMap((e) => [e.a, e.b]));
    this.joinChains(edges);
    const present = used();
    vertices.push(...vertex.filter((v) => present.has(v)));
    for (const e of edges) e.length = Math.max(1, e.elements.length) * (this.across ? 48 : 72);
    return { vertices, edges, root: this.root(vertices, edges) };
  }

  // root returns the shaft at which the flow of power begins: that of an engine, else of another source.
  root(vertices, edges) {
    const rate = (v) => {
      const e = v.element;
      return (/engine|motor/i.test(e.type) ? 4 : 0) + (/engine|motor|drive|loco/i.test(e.name) ? 2 : 0) + (isSource(e) ? 1 : 0);
    };
    const ends = vertices.filter((v) => v.kind === "end").sort((a, b) => rate(b) - rate(a));
    const first = ends.length && edges.find((e) => e.b === ends[0]);
    return first ? first.a : vertices.find((v) => v.kind === "bar") || vertices[0];
  }

  // joinChains joins two elements at a part without inertia that has nothing else, as a gear and its clutch.
  joinChains(edges) {
    for (let joined = true; joined;) {
      joined = false;
      for (const e of edges) {
        for (const v of [e.a, e.b]) {
          const at = edges.filter((o) => o.a === v || o.b === v);
          if (v.kind !== "bar" || this.plant.nodes[v.node].type || v.also.length || at.length !== 2 || at[0] === at[1]) continue;
          const [p, q] = at;
          if (p.of || q.of) continue;
          if (p.b !== v) this.turn(p);
          if (q.a !== v) this.turn(q);
          if (p.a === q.b) continue;
          p.elements.push(...q.elements);
          p.b = q.b;
          edges.splice(edges.indexOf(q), 1);
          joined = true;
          break;
        }
        if (joined) break;
      }
    }
  }

  turn(e) {
    [e.a, e.b] = [e.b, e.a];
    e.elements.reverse();
  }

  // groups returns the graph of a large plant: a vertex per assembly.
  groups() {
    const { nodes, elements } = this.plant;
    const byName = new Map(), edges = [], seen = new Set();
    const bodies = new Set(elements.filter((e) => e.type === "body").map((e) => e.name));
    const nameOf = (name) => { // of the assembly that holds a node or element
      for (let n = name; n; n = parent(n)) if (bodies.has(n)) return parent(n) || n;
      return parent(name);
    };
    const group = (name, fallback) => {
      const key = name || fallback;
      if (!byName.has(key)) byName.set(key, { kind: "group", name: key, nodes: [], frictions: [], thick: 140, span: 44 });
      return byName.get(key);
    };
    nodes.forEach((n, i) => {
      if (n.type && n.type !== "fixed" && n.speed) group(nameOf(n.name), n.name).nodes.push(i);
    });
    for (const e of elements) {
      const own = group(nameOf(e.name), e.name);
      if (e.friction) own.frictions.push(e);
      if (isSource(e)) own.source = true;
      for (const f of e.flanges) {
        if (f.node < 0 || nodes[f.node].type === "fixed") continue;
        const other = group(nameOf(nodes[f.node].name), nodes[f.node].name);
        const key = [own.name, other.name].sort().join("\n");
        if (own === other || seen.has(key)) continue;
        seen.add(key);
        edges.push({ a: own, b: other, elements: [], length: 10 });
      }
    }
    const vertices = [...byName.values()].filter((v) => v.nodes.length || v.frictions.length || edges.some((e) => e.a === v || e.b === v));
    for (const v of vertices) v.span = 30 + 15 * Math.min(3, v.nodes.length) + (v.frictions.length ? 16 : 0);
    if (this.across) for (const v of vertices) [v.thick, v.span] = [v.span, 140];
    const first = vertices.find((v) => /loco|engine|motor/i.test(v.name)) || vertices[0];
    return { vertices, edges, root: first };
  }

  // describe shows the numbers of a part while the pointer or the focus is on it.
  describe(e, lines) {
    const show = () => { this.shownDetail = () => text(this.detail, lines()); this.shownDetail(); };
    e.addEventListener("pointerenter", show);
    e.addEventListener("focus", show);
  }

  drawVertex(picture, v) {
    const [x, y] = this.at(v.u, v.v);
    const g = svg("g", { class: v.kind, tabindex: 0 });
    picture.append(g);
    const [halfU, halfV] = [v.thick / 2, v.span / 2];
    const [w, h] = this.across ? [halfV, halfU] : [halfU, halfV];
    const label = (dx, dy, anchor, cls) => g.appendChild(svg("text", { x: x + dx, y: y + dy, "text-anchor": anchor, class: cls }));
    if (v.kind === "bar") {
      g.append(svg("rect", { x: x - w, y: y - h, width: 2 * w, height: 2 * h, rx: 5 }));
      const name = this.across ? label(-w + 6, 4, "start", "name inside") : label(0, -h - 18, "middle", "name");
      const value = this.across ? label(w - 6, 4, "end", "value number inside") : label(0, -h - 4, "middle", "value number");
      name.textContent = short(v.name);
      this.parts.push(() => text(value, this.speedText(v.node)));
      const n = this.plant.nodes[v.node];
      if (n.speed?.length === 1) this.dragSignal(g, n.speed[0].signal);
      this.describe(g, () => [n.name, n.type || "without inertia", this.speedText(v.node), n.inertia && quantity(n.inertia, n.moves ? "kg" : "kg.m2"),
        ...v.also.map((e) => `${e.name} (${e.type})` + this.torqueText(e, v.node))].filter(Boolean).join(", "));
    } else if (v.kind === "ground") {
      const p = this.across ? `M${x - 12} ${y - 8}H${x + 12}m-22 0l-4 8m13 -8l-4 8m13 -8l-4 8` : `M${x - 8} ${y - 12}V${y + 12}m0 -22l8 -4m-8 13l8 -4m-8 13l8 -4`;
      g.append(svg("path", { d: p }));
    } else if (v.kind === "group") {
      this.drawGroup(g, v, x, y, w, h, label);
    } else {
      g.append(svg("rect", { x: x - w, y: y - h, width: 2 * w, height: 2 * h, rx: 7 }));
      const e = v.element, icon = v.kind === "box" && this.drawIcon(g, e, ...(this.across ? [x - w + 28, y] : [x, y - 16]));
      const [right, below] = icon ? (this.across ? [18, 0] : [0, 20]) : [0, 0]; // the texts are beside or below it
      label(right, below + (v.kind === "box" ? -2 : -4), "middle", "name").textContent = short(v.name);
      const value = label(right, below + (v.kind === "box" ? 13 : 12), "middle", "value number");
      if (v.kind === "box") value.textContent = e.type.replace(/_/g, " ");
      else this.parts.push(() => text(value, this.torqueText(e, e.flanges.find((f) => f.key && f.node >= 0)?.node).replace(/^ /, "") || e.type.replace(/_/g, " ")));
      this.describe(g, () => `${e.name}, ${e.type}: ` + e.flanges.filter((f) => f.node >= 0)
        .map((f) => `${f.key} ${this.plant.nodes[f.node].name} ${this.speedText(f.node)}${this.torqueText(e, f.node)}`).join(", "));
    }
  }

  // drawIcon draws the wheels of a planetary set or a differential around a point. It reports whether the element is one.
  drawIcon(g, e, x, y) {
    const icon = svg("g", { class: "icon", transform: `translate(${x} ${y})` });
    const wheels = (n, radius, at, turn) => {
      for (let i = 0; i < n; i++) {
        const angle = (2 * Math.PI * (i + turn)) / n - Math.PI / 2;
        icon.append(svg("circle", { cx: (at * Math.cos(angle)).toFixed(1), cy: (at * Math.sin(angle)).toFixed(1), r: radius }));
      }
    };
    if (/planetary|ravigneaux/.test(e.type)) {
      icon.append(svg("circle", { r: 19 }), svg("circle", { r: 16.5 }), svg("circle", { r: 6 }));
      if (/ravigneaux/.test(e.type) || e.planets === "double") {
        wheels(3, 3.4, 9.4, 0);
        wheels(3, 3.4, 12.8, 0.17);
      } else wheels(3, 5, 11.2, 0);
    } else if (/differential/.test(e.type)) {
      icon.append(svg("path", { d: "M-19 -5h5v-4l8 4v10l-8 4v-4h-5zM19 -5h-5v-4l-8 4v10l8 4v-4h5zM-5 -19h10l-3 10h-4zM-5 19h10l-3 -10h-4z" }));
    } else return false;
    g.append(icon);
    return true;
  }

  drawGroup(g, v, x, y, w, h, label) {
    g.append(svg("rect", { x: x - w, y: y - h, width: 2 * w, height: 2 * h, rx: 7 }));
    const name = label(-w + 8, -h + 16, "start", "name");
    name.textContent = v.name;
    const rank = (i) => (this.plant.nodes[i].moves ? (/\.y$|phi$/.test(this.plant.nodes[i].name) ? 2 : 1) : 0);
    [...v.nodes].sort((a, b) => rank(a) - rank(b)).slice(0, 3).forEach((n, i) => {
      label(-w + 8, -h + 32 + 15 * i, "start", "value").textContent = short(this.plant.nodes[n].name);
      const value = label(w - 8, -h + 32 + 15 * i, "end", "value number");
      this.parts.push(() => text(value, this.speedText(n)));
    });
    v.frictions.slice(0, 4).forEach((e, i) => {
      const t = label(-w + 8 + (i * (2 * w - 12)) / Math.max(2, Math.min(4, v.frictions.length)), h - 7, "start", "");
      this.parts.push(() => {
        const [state, letter] = this.state(e);
        set(t, "class", "letter " + state);
        text(t, `${letter} ${short(e.name)}`);
      });
    });
    this.describe(g, () => v.name + ": " + [...v.nodes.map((n) => `${short(this.plant.nodes[n].name)} ${this.speedText(n)}`),
      ...v.frictions.map((e) => this.frictionText(e))].join(", "));
  }

  // torqueText returns the torque of an element on a node with a blank before it; "": not known.
  torqueText(e, node) {
    const f = e.flanges.find((o) => o.key && o.node === node);
    const v = this.sum(f?.torque);
    return Number.isFinite(v) ? " " + quantity(calm(v), this.plant.nodes[node].moves ? "N" : "N.m") : "";
  }

  frictionText(e) {
    const [state] = this.state(e);
    const slip = this.byName.get(e.name + ".w_rel"), tau = this.byName.get(e.name + ".tau");
    const value = (s) => s && quantity(calm(this.signals.values.get(s.name)), s.unit);
    return `${e.name} (${e.type}): ${state}, slip ${value(slip)}, ${value(tau)}`;
  }

  dragSignal(g, name) {
    if (this.byName.has(name)) draggable(g, name);
  }

  // powerInto returns the power that flows from end a of an edge into it, W.
  powerInto(e) {
    const first = e.elements[0] || e.of;
    const node = e.a.node;
    const f = first?.flanges.find((o) => o.node === node && o.key);
    return f ? -this.sum(f.torque) * this.speed(node) : NaN;
  }

  drawEdge(picture, e) {
    const g = svg("g", { class: "edge", tabindex: e.elements.length ? 0 : -1 });
    picture.append(g);
    const lines = this.flows.appendChild(svg("g", { class: "edge" }));
    const paths = e.parts.map((p) => lines.appendChild(svg("path", { class: "flow", d: this.path(p) })));
    const arrow = lines.appendChild(svg("path", { class: "arrow", d: "M-5 -5L5 0L-5 5Z" }));
    const forward = e.parts[0].ends[0] === e.a; // the parts run from a to b
    this.parts.push(() => this.updateFlow(e, paths, arrow, forward));
    const part = e.parts[Math.floor((e.parts.length - 1) / 2)];
    const list = forward ? e.elements : [...e.elements].reverse();
    list.forEach((element, i) => this.drawSymbol(g, element, part, (i + 1) / (list.length + 1)));
    if (e.of && !e.elements.length && e.b.kind === "box") this.drawPort(e);
    const pointed = e.elements.length ? e.elements : [e.of].filter(Boolean);
    for (const part of [g, lines]) {
      this.describe(part, () => pointed.map((o) => (o.friction ? this.frictionText(o) : `${o.name} (${o.type})` + this.torqueText(o, e.a.node))).join("; ") +
        this.powerText(this.powerInto(e)));
    }
  }

  powerText(p) { return Number.isFinite(p) ? "; power " + quantity(calm(Math.abs(p) / 1e3), "kW", 3) : ""; }

  // drawPort names the flange of a box: beside the line, or in the box if the flow runs downwards.
  drawPort(e) {
    const f = e.of.flanges.find((o) => o.node === e.a.node);
    const part = e.parts.find((p) => p.ends.includes(e.b)); // the one at the box
    const box = e.b, [x, y] = this.at(box.u, part.port.get(box));
    const before = box.layer === part.ends[1].layer && part.ends[1] === box;
    const off = (box.thick / 2 + 5) * (before ? -1 : 1);
    const t = this.across ? svg("text", { x, y: y + off + (before ? 14 : -7), class: "port", "text-anchor": "middle" })
      : svg("text", { x: x + off, y: y - 8, class: "port", "text-anchor": before ? "end" : "start" });
    t.textContent = f.key.replace(/_/g, " ");
    this.names.append(t);
  }

  updateFlow(e, paths, arrow, forward) {
    const p = this.powerInto(e), known = Number.isFinite(p);
    e.power = known ? Math.abs(p) : 0;
    const pointed = e.elements.length || e.of; // a connection of two assemblies has no power of its own
    const width = known ? 1.5 + 9 * Math.sqrt(Math.min(1, e.power / this.most)) : 1.5;
    for (const path of paths) {
      set(path, "stroke-width", width.toFixed(1));
      set(path, "class", known ? (e.power > 0.002 * this.most ? "flow on" : "flow") : pointed ? "flow unknown" : "flow");
    }
    const visible = known && e.power > 0.01 * this.most;
    set(arrow, "visibility", visible ? "visible" : "hidden");
    if (!visible) return;
    e.arrow ||= this.onPath(paths[0], this.across ? 0.15 : 0.9);
    const way = p > 0 === forward ? 0 : 180;
    set(arrow, "transform", `translate(${e.arrow.x} ${e.arrow.y}) rotate(${way + e.arrow.angle}) scale(${(0.7 + width / 9).toFixed(2)})`);
  }

  // onPath returns the point at a share of the length of a path, and the angle of the path there, degrees.
  onPath(path, share) {
    const length = path.getTotalLength(), at = (l) => path.getPointAtLength(Math.min(length, Math.max(0, l)));
    const { x, y } = at(length * share), a = at(length * share - 2), b = at(length * share + 2);
    return { x: x.toFixed(1), y: y.toFixed(1), angle: Math.round((Math.atan2(b.y - a.y, b.x - a.x) * 180) / Math.PI) };
  }

  // outside returns the u of the piece of a part between two vertices of one layer that is beside them.
  outside(p) { return Math.max(p.ends[0].u + p.ends[0].thick / 2, p.ends[1].u + p.ends[1].thick / 2) + (p.edge.elements.length ? 34 : 18); }

  // endsOf returns where a part of an edge begins and ends, in u and v, and the middle of its straight piece.
  endsOf(p) {
    const [a, b] = p.ends, va = p.port.get(a), vb = p.port.get(b);
    const ua = a.u + a.thick / 2, ub = a.layer === b.layer ? b.u + b.thick / 2 : b.u - b.thick / 2;
    return { ua, va, ub, vb, same: a.layer === b.layer };
  }

  // middle returns the point of a part at a share of its gap.
  middle(p, share) {
    const { ua, va, ub, vb, same } = this.endsOf(p);
    if (same) return this.at(this.outside(p), va + (vb - va) * share);
    const straight = this.straight(p);
    const u = ua + (ub - ua) * share;
    const v = u < straight.from ? va : u > straight.to ? vb : straight.v;
    return this.at(u, v);
  }

  // straight returns the piece of a part that holds the symbols.
  straight(p) {
    const { ua, va, ub, vb } = this.endsOf(p);
    const half = Math.min(p.length / 2 + 4, Math.max(0, (ub - ua) / 2 - 12)), um = (ua + ub) / 2;
    const v = p.ends[0].bend ? vb : p.ends[1].bend ? va : p.ends[1].kind === "bar" && p.ends[0].kind !== "bar" ? va : p.ends[0].near.after.length > p.ends[1].near.before.length ? va : vb;
    return { from: um - half, to: um + half, v };
  }

  path(p) {
    const { ua, va, ub, vb, same } = this.endsOf(p);
    const pt = (u, v) => this.at(u, v).map((x) => x.toFixed(1)).join(" ");
    if (same) {
      const out = this.outside(p);
      return `M${pt(ua, va)}L${pt(out - 8, va)}Q${pt(out, va)} ${pt(out, va + Math.sign(vb - va) * 8)}L${pt(out, vb - Math.sign(vb - va) * 8)}Q${pt(out, vb)} ${pt(out - 8, vb)}L${pt(ub, vb)}`;
    }
    if (p.drop !== undefined) return `M${pt(p.drop, p.ends[0].v + p.ends[0].span / 2)}L${pt(p.drop, vb)}L${pt(p.ends[1].u - p.ends[1].thick / 2, vb)}`;
    if (p.elbow !== undefined) return `M${pt(ua, va)}L${pt(p.ends[1].u, va)}L${pt(p.ends[1].u, p.elbow)}`;
    const s = this.straight(p);
    const c1 = (ua + s.from) / 2, c2 = (s.to + ub) / 2;
    return `M${pt(ua, va)}C${pt(c1, va)} ${pt(c1, s.v)} ${pt(s.from, s.v)}L${pt(s.to, s.v)}C${pt(c2, s.v)} ${pt(c2, vb)} ${pt(ub, vb)}`;
  }

  drawSymbol(g, e, part, share) {
    const { ua, ub, same } = this.endsOf(part);
    let x, y;
    if (same) [x, y] = this.middle(part, share);
    else {
      const s = this.straight(part), half = (s.to - s.from) / 2;
      [x, y] = this.at(s.from + 2 * half * share, s.v);
    }
    const turned = same !== this.across ? 90 : 0;
    const s = svg("g", { class: "symbol", transform: `translate(${x} ${y}) rotate(${turned})` });
    g.append(s);
    const path = (d, cls) => s.appendChild(svg("path", { d, class: cls || "" }));
    const beside = same !== this.across; // the texts are to the right of the symbol, else above and below it
    const above = beside ? -2 : e.friction ? -17 : 23;
    const name = svg("text", { class: e.friction ? "name" : "value", "text-anchor": beside ? "start" : "middle", x: beside ? x + 17 : x, y: y + above });
    const value = svg("text", { class: "value number", "text-anchor": beside ? "start" : "end", x: beside ? x + 17 : x + 18, y: beside ? y + 11 : y + 25 }); // clear of the next bar's name
    g.append(name, value);
    name.textContent = this.across || e.friction || part.edge.elements.length === 1 ? short(e.name) : ""; // room for torques
    if (isClutch(e)) return this.drawFriction(e, s, path, name, value);
    if (/gear$|gear_/.test(e.type)) {
      s.append(svg("circle", { cx: -5, cy: 0, r: 9 }), svg("circle", { cx: 9, cy: 0, r: 5 }));
    } else if (/converter/.test(e.type)) {
      path("M-10 0A10 10 0 1 1 10 0A10 10 0 1 1 -10 0M0 -10V10", "body");
    } else if (/spring|damper|backlash|gap|shaft|elasto|clearance/.test(e.type)) {
      path("M-16 0h4l3 -7l5 14l5 -14l5 14l3 -7h5", "body");
    } else if (/wheel|tyre|vehicle|contact/.test(e.type)) {
      s.append(svg("circle", { cx: 0, cy: 0, r: 10 }), svg("circle", { cx: 0, cy: 0, r: 2 }));
    } else {
      s.append(svg("rect", { x: -15, y: -8, width: 30, height: 16, rx: 3 }));
    }
  }

  drawFriction(e, s, path, name, value) {
    const hit = s.appendChild(svg("rect", { x: -12, y: -14, width: 24, height: 28, class: "hit" }));
    const left = path("M0 -12V12", "plate"), right = path("M0 -12V12", "plate");
    const tau = this.byName.get(e.name + ".tau");
    this.dragSignal(hit, e.name + ".tau");
    this.parts.push(() => {
      const [state, letter] = this.state(e);
      const apart = { locked: 1.8, slipping: 3.6, open: 7 }[state] ?? 5;
      set(s, "class", "symbol friction " + state);
      set(left, "transform", `translate(${-apart} 0)`);
      set(right, "transform", `translate(${apart} 0)`);
      set(name, "class", "name letter " + state);
      text(name, `${letter} ${short(e.name)}`);
      const v = this.signals.values.get(e.name + ".tau");
      text(value, state === "open" || !tau ? "" : quantity(calm(v), tau.unit));
    });
  }

  // summarise says what is locked and what slips, and the speeds at both ends of the drivetrain.
  summarise() {
    const by = { locked: [], slipping: [], open: [], unknown: [] };
    for (const e of this.plant.elements) if (isClutch(e)) by[this.state(e)[0]].push(short(e.name));
    const few = by.locked.length + by.slipping.length + by.open.length <= many / 2;
    const said = (names) => (!names.length ? "–" : few ? names.join(", ") : String(names.length));
    const [a, b] = this.ends.map((v) => (v?.kind === "bar" ? v.node : v?.nodes?.find((n) => this.plant.nodes[n].moves)));
    const speeds = [a, b].filter((n) => n !== undefined && Number.isFinite(this.speed(n)));
    const ratio = speeds.length === 2 && !this.plant.nodes[a].moves && !this.plant.nodes[b].moves && Math.abs(this.speed(b)) > 0.5
      ? `${number(this.speed(a) / this.speed(b), 3)} : 1` : "";
    const parts = [["locked", "locked: " + said(by.locked)], ["slipping", "slips: " + said(by.slipping)],
      ["speeds number", speeds.map((n) => `${short(this.plant.nodes[n].name)} ${this.speedText(n)}`).join(" → ")], ["ratio number", ratio]]
      .filter(([c, t]) => t && (by.locked.length + by.slipping.length + by.open.length || c.includes("number")));
    if (this.summary.childElementCount !== parts.length) this.summary.replaceChildren(...parts.map(() => el("span", {})));
    parts.forEach(([c, t], i) => {
      set(this.summary.children[i], "class", c);
      text(this.summary.children[i], t);
    });
  }

  update() {
    if (!this.parts) return;
    let most = 1;
    for (const e of this.edges) most = Math.max(most, Math.abs(this.powerInto(e)) || 0);
    this.most = this.signals.record ? most : Math.max(most, 0.97 * this.most); // the widths of a run fall slowly
    for (const f of this.parts) f();
    this.shownDetail?.();
    this.summarise();
    text(this.total, most > 1 ? "widest line: " + quantity(this.most / 1e3, "kW", 2) : "");
  }
}
