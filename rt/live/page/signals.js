// History of the signals: one stream of the door at a time, whose samples go into rings.

import { follow, Refused } from "./door.js";

const capacity = 16384; // samples per signal

// Ring holds the last samples of one signal: the time, the last, the least and the largest value of each.
export class Ring {
  constructor() {
    this.t = new Float64Array(capacity);
    this.v = new Float32Array(3 * capacity);
    this.n = 0; // samples so far
  }
  add(t, last, min, max) {
    const i = this.n++ % capacity;
    this.t[i] = t;
    this.v.set([last, min, max], 3 * i);
  }
  get first() { return Math.max(0, this.n - capacity); }
  time(k) { return this.t[k % capacity]; }
  last(k) { return this.v[3 * (k % capacity)]; }
  min(k) { return this.v[3 * (k % capacity) + 1]; }
  max(k) { return this.v[3 * (k % capacity) + 2]; }

  // after returns the first sample after a time.
  after(t) {
    let low = this.first, high = this.n;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.time(mid) > t) high = mid;
      else low = mid + 1;
    }
    return low;
  }
}

// Second shows the signals of the second file of a record, whose names begin with "2:", by their own names.
export class Second {
  constructor(all) {
    this.all = all;
    this.listeners = all.listeners;
    this.values = { get: (name) => all.values.get("2:" + name) };
    this.rings = { get: (name) => all.rings.get("2:" + name), has: (name) => all.rings.has("2:" + name) };
  }
  get time() { return this.all.time; }
  get record() { return this.all.record; }
  get every() { return this.all.every; }
  set every(every) { this.all.every = every; }
  setEvery(every) { this.all.setEvery(every); }
  want(panel, names) { this.all.want("2:" + panel, names.map((n) => "2:" + n)); }
}

// Signals subscribes to the signals that the panels want. Panels set wants, by panel; values and rings
// hold what came.
export class Signals {
  constructor(onState) {
    this.onState = onState;
    this.wants = new Map(); // panel -> names
    this.rings = new Map();
    this.values = new Map(); // last value of each signal
    this.every = "20ms";
    this.tick = 0;
    this.time = 0;
    this.seen = 0; // performance.now() of the last sample
    this.lost = 0; // ticks that the stream lacked
    this.ended = null; // last line of the stream
    this.listeners = [];
    this.current = null;
    this.older = []; // streams that end when the current one has begun
  }

  want(panel, names) {
    this.wants.set(panel, names);
    clearTimeout(this.later);
    this.later = setTimeout(() => this.restart(), 50);
  }

  setEvery(every) {
    this.every = every;
    this.restart();
  }

  // restart opens a stream with the signals wanted now. The stream before it goes on until the new one has
  // begun, so that no tick is missing between them.
  restart() {
    const names = [...new Set([...this.wants.values()].flat())];
    const key = names.join("\n") + "\n" + this.every;
    if (!names.length || (this.current && this.current.key === key && !this.current.over)) return;
    if (this.current) this.older.push(this.current);
    const stop = new AbortController();
    const stream = { key, stop, over: false };
    this.current = stream;
    let signals = null;
    const take = (line) => {
      if (line.signals) {
        signals = line.signals.map((s) => s.name);
        if (this.record) { // each stream of a record is whole
          this.rings.clear();
          this.tick = -1;
        }
        for (const n of signals) if (!this.rings.has(n)) this.rings.set(n, new Ring());
        for (const n of this.rings.keys()) if (!signals.includes(n)) this.rings.delete(n);
        this.onState("running");
      } else if (line.ended !== undefined) {
        this.ended = line;
        this.onState("ended");
      } else if (line.tick > this.tick) {
        if (stream === this.current) for (const o of this.older.splice(0)) o.stop.abort();
        this.sample(signals, line);
      }
    };
    follow(names, this.every, stop.signal, take)
      .then(() => this.over(stream), (e) => this.over(stream, e));
  }

  sample(signals, line) {
    this.tick = line.tick;
    this.time = line.time_s;
    this.seen = performance.now();
    this.lost += line.lost || 0;
    for (let i = 0; i < signals.length; i++) {
      const last = line.last[i] ?? NaN;
      this.values.set(signals[i], last);
      this.rings.get(signals[i])?.add(line.time_s, last, line.min?.[i] ?? last, line.max?.[i] ?? last);
    }
    for (const f of this.listeners) f(line);
  }

  over(stream, error) {
    stream.over = true;
    if (stream !== this.current || this.ended) return;
    this.onState("disconnected", error instanceof Refused ? error.message : "");
    setTimeout(() => { if (stream === this.current) this.restart(); }, 1000);
  }
}
