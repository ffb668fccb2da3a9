// Units that the page converts between, and the format of numbers.

const families = [
  { "rad/s": 1, rpm: Math.PI / 30, "1/s": 2 * Math.PI },
  { "m/s": 1, "km/h": 1 / 3.6 },
  { Pa: 1, kPa: 1e3, bar: 1e5, MPa: 1e6 },
  { "N.m": 1, "kN.m": 1e3 },
  { N: 1, kN: 1e3 },
  { W: 1, kW: 1e3 },
  { s: 1, ms: 1e-3, us: 1e-6 },
  { 1: 1, "%": 0.01 },
  { rad: 1, deg: Math.PI / 180 },
  { m: 1, mm: 1e-3 },
  { A: 1, mA: 1e-3 },
];

const familyOf = (unit) => families.find((f) => f[unit] !== undefined);

// alternatives returns the units in which a value of a unit can be shown.
export const alternatives = (unit) => Object.keys(familyOf(unit) || { [unit]: 1 });

// factor returns by what a value in from is multiplied to be in to.
export function factor(from, to) {
  const f = familyOf(from);
  return f && f[to] ? f[from] / f[to] : 1;
}

// shown returns the spelling of a unit for people.
export const shown = (unit) => (unit === "1" ? "" : unit.replace(/\./g, "·"));

// number formats a value with four digits, without an exponent where it fits.
export function number(v, digits = 4) {
  if (v === undefined || !Number.isFinite(v)) return "–";
  const a = Math.abs(v);
  if (a === 0) return "0";
  if (a >= 1e6 || a < 1e-4) return v.toExponential(2).replace("-", "−");
  const places = Math.max(0, digits - 1 - Math.max(0, Math.floor(Math.log10(a))));
  const text = v.toFixed(Math.min(places, digits - 1));
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

// mark formats a number on an axis, without zeros at its end.
export const mark = (v) => (v !== 0 && Math.abs(v) < 1e-3 ? v.toExponential(3).replace(/\.?0+e/, "e") : String(Number(v.toPrecision(7)))).replace(/-/g, "−");

// quantity formats a value with its unit.
export const quantity = (v, unit, digits) => (number(v, digits) + " " + shown(unit)).trim();
