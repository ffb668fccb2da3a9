// A small plotter: signals over time on a canvas, or the same drawing as SVG.

import { mark, shown } from "./units.js";

// Drawing has what the plotter uses of a canvas context, and writes SVG.
class Drawing {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.parts = [];
    this.path = "";
    this.clipped = false;
  }
  beginPath() { this.path = ""; }
  moveTo(x, y) { this.path += `M${x.toFixed(1)} ${y.toFixed(1)}`; }
  lineTo(x, y) { this.path += `L${x.toFixed(1)} ${y.toFixed(1)}`; }
  setLineDash(list) { this.dash = list.join(" "); }
  stroke() {
    const clip = this.clipped ? ' clip-path="url(#c)"' : "";
    this.parts.push(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"` +
      ` stroke-dasharray="${this.dash || "none"}"${clip}/>`);
  }
  fillRect(x, y, w, h) { this.parts.push(`<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="${this.fillStyle}"/>`); }
  fillText(text, x, y) {
    const anchor = { right: "end", center: "middle" }[this.textAlign] || "start";
    const safe = text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
    this.parts.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${this.fillStyle}" text-anchor="${anchor}">${safe}</text>`);
  }
  clip(x, y, w, h) {
    this.parts.push(`<clipPath id="c"><rect x="${x}" y="${y}" width="${w}" height="${h}"/></clipPath>`);
    this.clipped = true;
  }
  unclip() { this.clipped = false; }
  text() {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}"` +
      ` font-family="sans-serif" font-size="12">${this.parts.join("\n")}</svg>\n`;
  }
}

// steps returns round numbers between low and high, about count of them.
export function steps(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw) || 10 * power;
  const list = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + 1e-9 * step; v += step) list.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return list;
}

// columns returns the least, the largest and the last value per pixel, so that no spike is lost. NaN: no sample.
function columns(ring, t0, t1, width, scale) {
  const low = new Float64Array(width).fill(NaN), high = low.slice(), last = low.slice();
  for (let k = Math.max(ring.first, ring.after(t0) - 1); k < ring.n && ring.time(k) <= t1; k++) {
    const i = Math.min(width - 1, Math.max(0, Math.round(((ring.time(k) - t0) / (t1 - t0)) * (width - 1))));
    const min = ring.min(k) * scale, max = ring.max(k) * scale;
    if (!(low[i] <= min)) low[i] = min;
    if (!(high[i] >= max)) high[i] = max;
    last[i] = ring.last(k) * scale;
  }
  return { low, high, last };
}

// plot draws traces {ring, scale, unit, colour} from t0 to t1. It returns where the plot area is. It sets the least and the
// largest value of each unit in ranges; the axes cover those of others too.
export function plot(g, size, traces, t0, t1, look, ranges = new Map(), others = []) {
  ranges.clear();
  const units = [...new Set(traces.map((t) => t.unit))];
  const axis = 54, left = 6 + axis * Math.max(1, Math.min(units.length, size.width < 560 ? 2 : 4)), top = 10, bottom = 24;
  const width = Math.max(20, Math.floor(size.width - left - 10)), height = Math.max(20, size.height - top - bottom);
  g.fillStyle = look.back;
  g.fillRect(0, 0, size.width, size.height);
  const x = (t) => left + ((t - t0) / (t1 - t0)) * width;
  g.lineWidth = 1;
  g.setLineDash([]);
  for (const t of steps(t0, t1, width / 90)) {
    line(g, look.grid, [[x(t), top], [x(t), top + height]]);
    g.fillStyle = look.text;
    g.textAlign = "center";
    g.fillText(mark(t) + " s", Math.min(x(t), left + width - 16), top + height + 17);
  }
  const area = { left, top, width, height, x, time: (px) => t0 + ((px - left) / width) * (t1 - t0) };
  const drawn = traces.map((t) => ({ ...t, ...columns(t.ring, t0, t1, width, t.scale) }));
  units.forEach((unit, i) => {
    const of = drawn.filter((t) => t.unit === unit);
    ranges.set(unit, range(of));
    const all = [ranges, ...others].map((r) => r.get(unit)).filter(Boolean);
    drawUnit(g, area, of, [Math.min(...all.map((r) => r[0])), Math.max(...all.map((r) => r[1]))], i, axis, look);
  });
  return area;
}

function line(g, colour, points) {
  g.strokeStyle = colour;
  g.beginPath();
  points.forEach(([px, py], i) => (i ? g.lineTo(px, py) : g.moveTo(px, py)));
  g.stroke();
}

// range returns the least and the largest value of traces.
function range(traces) {
  let low = Infinity, high = -Infinity;
  for (const t of traces) {
    for (let i = 0; i < t.low.length; i++) {
      if (t.low[i] < low) low = t.low[i];
      if (t.high[i] > high) high = t.high[i];
    }
  }
  return [low, high];
}

// drawUnit draws the axis and the traces of a unit.
function drawUnit(g, area, traces, [low, high], index, axis, look) {
  if (!(low <= high)) [low, high] = [0, 1];
  if (low === 0 && high === 0) [low, high] = [-1, 1];
  const room = Math.max((high - low) * 0.06, Math.abs(high) * 1e-3, Math.abs(low) * 1e-3);
  [low, high] = [low - room, high + room];
  const y = (v) => area.top + area.height - ((v - low) / (high - low)) * area.height;
  const right = area.left - 6 - index * axis;
  if (right > 30) {
    g.textAlign = "right";
    for (const v of steps(low, high, area.height / 42)) {
      if (index === 0) line(g, look.grid, [[area.left, y(v)], [area.left + area.width, y(v)]]);
      g.fillStyle = traces.length === 1 ? traces[0].colour : look.text;
      if (y(v) > area.top + 16) g.fillText(mark(v), right, y(v) + 4);
    }
    g.fillStyle = traces.length === 1 ? traces[0].colour : look.text;
    g.fillText(shown(traces[0].unit) || "–", right, area.top + 8);
  }
  g.clip(area.left, area.top - 1, area.width, area.height + 2);
  g.lineWidth = 1.6;
  for (const t of traces) {
    g.setLineDash(t.dash || []);
    g.strokeStyle = t.colour;
    g.beginPath();
    let before = NaN;
    for (let i = 0; i < t.low.length; i++) {
      if (Number.isNaN(t.last[i])) continue; // between samples the line goes on
      const px = area.left + i, falls = before > (t.low[i] + t.high[i]) / 2;
      const [first, second] = falls ? [t.high[i], t.low[i]] : [t.low[i], t.high[i]];
      if (Number.isNaN(before)) g.moveTo(px, y(first));
      else g.lineTo(px, y(first));
      if (second !== first) g.lineTo(px, y(second));
      if (t.last[i] !== second) g.lineTo(px, y(t.last[i]));
      before = t.last[i];
    }
    g.stroke();
  }
  g.unclip();
  g.setLineDash([]);
  g.lineWidth = 1;
}

// canvasContext returns the context of a canvas, in CSS pixels, with the methods of Drawing.
export function canvasContext(canvas, size, ratio = window.devicePixelRatio || 1) {
  const w = Math.round(size.width * ratio), h = Math.round(size.height * ratio);
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.font = "12px sans-serif";
  g.lineJoin = "bevel";
  const o = {
    clip: (x, y, cw, ch) => { g.save(); g.beginPath(); g.rect(x, y, cw, ch); g.clip(); },
    unclip: () => g.restore(),
  };
  for (const m of ["beginPath", "moveTo", "lineTo", "stroke", "fillRect", "fillText", "setLineDash"]) o[m] = g[m].bind(g);
  for (const p of ["strokeStyle", "fillStyle", "lineWidth", "textAlign"]) {
    Object.defineProperty(o, p, { get: () => g[p], set: (v) => { g[p] = v; } });
  }
  return o;
}

// drawing returns a context that writes SVG.
export const drawing = (width, height) => new Drawing(width, height);
