// Placement of a graph in layers: u runs along the flow of power, v across it.

// place sets u, v and the ports of vertices {id, thick, span} and edges {a, b, length}. root is the vertex at
// which the flow begins. It returns the size {u, v} of the picture.
export function place(vertices, edges, root, lane, gap) {
  rank(vertices, edges, root);
  const all = [...vertices], parts = [];
  for (const e of edges) {
    e.parts = split(e, all, lane);
    parts.push(...e.parts);
  }
  const layers = [];
  for (const v of all) (layers[v.layer] ||= []).push(v);
  for (const v of all) v.near = { before: [], after: [] };
  for (const p of parts) {
    const [a, b] = p.ends;
    if (a.layer === b.layer) {
      a.near.after.push(p);
      b.near.after.push(p);
    } else {
      a.near.after.push(p);
      b.near.before.push(p);
    }
  }
  for (const v of vertices) v.span = Math.max(v.span, lane * Math.max(v.near.before.length, v.near.after.length));
  arrange(layers, lane, gap);
  for (const v of all) {
    for (const side of ["before", "after"]) {
      v.near[side].sort((p, q) => far(p, v) - far(q, v));
      v.near[side].forEach((p, i) => (p.port ||= new Map()).set(v, v.v + (i - (v.near[side].length - 1) / 2) * lane));
    }
  }
  return along(layers, parts);
}

// list places a graph as a list for a narrow screen: each vertex is below the one that leads to it, and further
// to the right. It returns the size {u, v} of the picture.
export function list(vertices, edges, root, indent, gap) {
  const done = new Set();
  let u = 0, most = 0;
  const visit = (v, depth) => {
    done.add(v);
    v.layer = done.size;
    v.near = { before: [], after: [] };
    v.u = u + v.thick / 2;
    v.v = depth * indent + v.span / 2;
    u += v.thick + gap;
    most = Math.max(most, v.v + v.span / 2);
    for (const e of edges) {
      const next = e.a === v ? e.b : e.b === v ? e.a : v;
      if (!done.has(next)) visit(next, depth + 1);
    }
  };
  for (const v of [root, ...vertices]) if (!done.has(v)) visit(v, 0);
  for (const e of edges) {
    const ends = [e.a, e.b].sort((a, b) => a.layer - b.layer), [a, b] = ends, at = a.v - a.span / 2 + indent / 2;
    e.parts = [{ ends, edge: e, length: 0, port: new Map([[a, at], [b, at]]), elbow: b.v - b.span / 2 }];
  }
  return { u: u - gap, v: most };
}

// columns places a large graph as columns: the longest chain from the root is the row at the top, and what hangs on a
// vertex of the chain is a list below it. It returns the size {u, v} of the picture.
export function columns(vertices, edges, root, indent, gap) {
  const next = new Map(vertices.map((v) => [v, []]));
  for (const e of edges) {
    next.get(e.a).push(e.b);
    next.get(e.b).push(e.a);
  }
  const before = new Map([[root, null]]); // each vertex, in the order of its distance from the root
  for (const v of before.keys()) for (const w of next.get(v)) if (!before.has(w)) before.set(w, v);
  const height = new Map(), below = new Map([...before.keys()].map((v) => [v, []])); // of the tree of these ways
  for (const v of [...before.keys()].reverse()) {
    height.set(v, 1 + Math.max(0, ...below.get(v).map((w) => height.get(w))));
    if (before.get(v)) below.get(before.get(v)).push(v);
  }
  const row = new Set();
  for (let v = root; v;) { // it ends where two ways are as long as each other
    row.add(v);
    const [first, second] = below.get(v).sort((a, b) => height.get(b) - height.get(a));
    v = first && height.get(first) > (second ? height.get(second) : 0) ? first : null;
  }
  let u = 0, most = 0, layer = 0;
  const done = new Set();
  const visit = (v, depth, column) => {
    done.add(v);
    v.layer = layer++;
    v.near = { before: [], after: [] };
    v.u = u + depth * indent + v.thick / 2;
    v.v = column.v + v.span / 2;
    column.v += v.span + gap;
    column.u = Math.max(column.u, v.u + v.thick / 2);
    for (const w of next.get(v)) if (!done.has(w) && !row.has(w)) visit(w, depth + 1, column);
  };
  for (const v of [...row, ...vertices]) {
    if (done.has(v)) continue;
    const column = { u, v: 0 };
    visit(v, 0, column);
    u = column.u + 2 * gap;
    most = Math.max(most, column.v);
  }
  for (const e of edges) {
    const ends = [e.a, e.b].sort((a, b) => a.layer - b.layer), [a, b] = ends;
    const along = row.has(a) && row.has(b), at = Math.min(a.v, b.v);
    e.parts = [{ ends, edge: e, length: 0, port: new Map([[a, along ? at : a.v], [b, along ? at : b.v]]), drop: along ? undefined : a.u - a.thick / 2 + indent / 2 }];
  }
  return { u: u - 2 * gap, v: most - gap };
}

const far = (p, v) => (p.ends[0] === v ? p.ends[1] : p.ends[0]).v;

// rank gives each vertex its layer: the distance from the root. Ends that feed the root come before it.
function rank(vertices, edges, root) {
  const next = new Map(vertices.map((v) => [v, []]));
  for (const e of edges) {
    next.get(e.a).push(e.b);
    next.get(e.b).push(e.a);
  }
  for (const v of vertices) v.layer = undefined;
  for (const first of [root, ...vertices]) {
    if (first.layer !== undefined) continue;
    first.layer = 0;
    for (let queue = [first]; queue.length;) {
      const v = queue.shift();
      for (const w of next.get(v)) {
        if (w.layer !== undefined) continue;
        w.layer = w.source && v === root ? -1 : v.layer + 1;
        queue.push(w);
      }
    }
  }
  const least = Math.min(...vertices.map((v) => v.layer));
  for (const v of vertices) v.layer -= least;
}

// split returns the parts of an edge, each from one layer to the next. Between them are vertices without a
// picture. The first part carries the symbols.
function split(e, all, lane) {
  let [a, b] = e.a.layer <= e.b.layer ? [e.a, e.b] : [e.b, e.a];
  const list = [];
  const long = b.layer - a.layer;
  for (let from = a, k = 1; k <= Math.max(1, long); k++) {
    const to = k >= long ? b : { layer: a.layer + k, span: lane * 0.6, thick: 0, bend: true };
    if (to.bend) all.push(to);
    list.push({ ends: [from, to], edge: e, length: 0 });
    from = to;
  }
  list[Math.floor((list.length - 1) / 2)].length = e.length;
  return list;
}

// arrange orders the vertices of each layer and gives them v, so that neighbours are near.
function arrange(layers, lane, gap) {
  const separation = (a, b) => (a.span + b.span) / 2 + (a.bend || b.bend ? gap / 3 : gap);
  const pack = (layer) => {
    layer.sort((a, b) => a.want - b.want);
    let at = 0;
    layer.forEach((v, i) => { at = i ? at + separation(layer[i - 1], v) : 0; v.v = at; });
    const shift = layer.reduce((s, v) => s + v.want - v.v, 0) / layer.length;
    for (const v of layer) v.v += shift;
  };
  for (const layer of layers) {
    layer.forEach((v, i) => { v.want = i * lane; });
    pack(layer);
  }
  for (let sweep = 0; sweep < 16; sweep++) {
    const list = sweep % 2 ? [...layers].reverse() : layers;
    for (const layer of list) {
      for (const v of layer) {
        const near = [...v.near.before, ...v.near.after].filter((p) => p.ends[0].layer !== p.ends[1].layer);
        const mean = near.reduce((s, p) => s + far(p, v), 0) / (near.length || 1);
        v.want = near.length ? mean : v.v;
      }
      pack(layer);
    }
  }
  for (let sweep = 0; sweep < 12; sweep++) { // the order stays, and each moves towards its neighbours
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      layer.forEach((v, i) => {
        const near = [...v.near.before, ...v.near.after];
        if (!near.length) return;
        const mean = near.reduce((s, p) => s + far(p, v), 0) / near.length;
        const low = i ? layer[i - 1].v + separation(layer[i - 1], v) : -Infinity;
        const high = i + 1 < layer.length ? layer[i + 1].v - separation(v, layer[i + 1]) : Infinity;
        v.v = Math.max(low, Math.min(high, mean));
      });
    }
  }
}

// along sets u of the layers, and moves v to 0 and up.
function along(layers, parts) {
  const thick = layers.map((l) => Math.max(...l.map((v) => v.thick)));
  const room = layers.map((_, i) => Math.max(34, ...parts.filter((p) => p.ends[0].layer === i).map((p) => p.length + 34)));
  let u = 0, low = Infinity, high = -Infinity;
  layers.forEach((layer, i) => {
    for (const v of layer) {
      v.u = u + thick[i] / 2;
      low = Math.min(low, v.v - v.span / 2);
      high = Math.max(high, v.v + v.span / 2);
    }
    u += thick[i] + (i + 1 < layers.length || parts.some((p) => p.ends[0].layer === i && p.ends[1].layer === i) ? room[i] : 0);
  });
  for (const layer of layers) for (const v of layer) v.v -= low;
  for (const p of parts) for (const [v, at] of p.port) p.port.set(v, at - low);
  return { u, v: high - low };
}
