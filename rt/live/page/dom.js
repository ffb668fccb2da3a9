// Making elements of the page, and messages to its reader.

import { post } from "./door.js";

const svgSpace = "http://www.w3.org/2000/svg";

function fill(e, attributes, children) {
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v === true) e.setAttribute(k, "");
    else if (v !== false && v !== undefined) e.setAttribute(k, v);
  }
  e.append(...children.filter((c) => c !== undefined && c !== null && c !== false));
  return e;
}

// el makes an element of HTML: on… attributes are listeners.
export const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);

// svg makes an element of SVG.
export const svg = (name, attributes, ...children) => fill(document.createElementNS(svgSpace, name), attributes, children);

// text sets the text of an element if it differs.
export function text(e, value) {
  if (e.textContent !== value) e.textContent = value;
}

// set sets an attribute if it differs.
export function set(e, name, value) {
  if (e.getAttribute(name) !== String(value)) e.setAttribute(name, value);
}

let timer;

// say shows a message at the lower edge for some seconds; bad: it is a refusal.
export function say(message, bad) {
  const e = document.getElementById("message");
  e.textContent = message;
  e.className = bad ? "shown bad" : "shown";
  clearTimeout(timer);
  timer = setTimeout(() => { e.className = ""; }, bad ? 10000 : 5000);
}

// change makes a change of the run, says at which tick it has effect or why it is refused, and returns the answer.
export async function change(path, body, what) {
  try {
    const a = await post(path, body);
    say(`${what}: from tick ${a.tick}, ${a.time_s.toFixed(3)} s`);
    return a;
  } catch (e) {
    say(e.message, true);
    return { error: e.message };
  }
}

// draggable makes an element carry the name of a signal to the scope.
export function draggable(e, name) {
  e.draggable = true;
  e.addEventListener("dragstart", (v) => v.dataTransfer.setData("text/plain", name));
  return e;
}
