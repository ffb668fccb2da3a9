// The page: it joins the panels and says in which state the run is.

import { get } from "./door.js";
import { el, text } from "./dom.js";
import { Second, Signals } from "./signals.js";
import { RecordBar } from "./record.js";
import { Scope } from "./scope.js";
import { PlantPicture } from "./plant.js";
import { Faults, Inputs } from "./panels.js";
import { Buses } from "./bus.js";
import { Parameters } from "./parameters.js";
import { Scenario } from "./scenario.js";
import { Clock } from "./clock.js";
import { Runs } from "./runs.js";
import { Recording } from "./recording.js";

const panels = [["plant", "Drivetrain"], ["scope", "Scope"], ["inputs", "Inputs"], ["parameters", "Parameters"], ["faults", "Faults"],
  ["bus", "Bus"], ["scenario", "Scenario"], ["clock", "Clock"], ["runs", "Runs"]];
const byId = (id) => document.getElementById(id);
const panel = (id) => byId(id) || byId(id + "2"); // the first file of a record may lack it
let stream = "connecting", reason = "", status = null, active = [], scenario = null, logs = [];

// show makes a panel the visible one of a narrow screen, and brings it into view on a wide one.
function show(id, focus = true) {
  document.body.dataset.panel = id;
  for (const b of byId("tabs").children) b.setAttribute("aria-pressed", b.dataset.panel === id);
  if (focus && getComputedStyle(byId("tabs")).display === "none") panel(id).scrollIntoView({ block: "nearest" });
  if (focus) panel(id).querySelector("canvas, input, .message[tabindex]")?.focus({ preventScroll: true });
}

// announce shows the state of the run, the worst first.
function announce(signals) {
  const silent = signals.seen && performance.now() - signals.seen > 1000;
  const ended = signals.ended;
  let word = status?.state || "connecting", alert = "", level = word === "running" ? "good" : "warn";
  if (ended) {
    [word, level] = ["ended", ended.clean ? "warn" : "bad"];
    alert = `The run has ended at ${ended.time_s.toFixed(3)} s: ${ended.ended}. The page shows its last values.`;
  } else if (stream === "disconnected") {
    [word, level] = ["disconnected", "bad"];
    alert = "Disconnected: the page does not reach the run" + (reason ? ` (${reason})` : "") + ". It tries again each second. What is shown is old.";
  } else if (signals.record) {
    alert = "This is a record, no run. Nothing can be changed.";
  } else if (silent) {
    [word, level] = ["stale", "bad"];
    alert = `Stale: no sample for ${((performance.now() - signals.seen) / 1000).toFixed(1)} s. The loop or its supervisor stands still.`;
  } else if (word !== "running" && status) {
    level = "bad";
    alert = "The run is not as it should be: " + word;
  }
  text(byId("state"), word);
  byId("state").className = "pill " + level;
  text(byId("alert"), alert);
  byId("alert").hidden = !alert;
  byId("alert").classList.toggle("info", Boolean(signals.record) && level !== "bad");
  document.body.classList.toggle("old", Boolean(ended || silent && !signals.record || stream === "disconnected"));
  text(byId("time"), `${signals.time.toFixed(2)} s`);
  const notes = logs.map((b) => ["replay", "replay", `bus ${b.name} plays ${b.interface}: no control unit answers`]);
  if (status?.best_effort?.length) notes.push(["best effort", "loud", status.best_effort.join("\n")]);
  if (status?.missed) notes.push([`missed ${status.missed}`, "bad", "ticks missed so far"]);
  if (status?.late_ticks) notes.push([`late ${status.late_ticks}`, "warn", "late ticks so far"]);
  if (active.active) notes.push([`${active.active} fault${active.active > 1 ? "s" : ""} active`, "bad", ""]);
  if (scenario?.broken) notes.push([`${scenario.broken} expectation${scenario.broken > 1 ? "s" : ""} broken`, "bad", ""]);
  const key = JSON.stringify(notes);
  if (byId("warnings").dataset.key !== key) {
    byId("warnings").dataset.key = key;
    byId("warnings").replaceChildren(...notes.map(([t, c, title]) => el("span", { class: "pill " + c, title }, t)));
  }
}

async function pollStatus(listeners) {
  try {
    status = await get("status");
    for (const l of listeners) l.status(status);
  } catch { /* the stream says that the run is away */ }
  setTimeout(() => pollStatus(listeners), 1000);
}

// ofFile returns the description of file i of a record: the signals of the second one have their own names.
function ofFile(description, i) {
  const own = description.signals.filter((s) => (i > 0) === s.name.startsWith("2:"));
  const two = description.record?.files.length > 1;
  return { ...description, bench: description.bench + (i ? " 2" : ""), file: two ? `${i + 1}: ${description.record.files[i]}` : "",
    signals: i ? own.map((s) => ({ ...s, name: s.name.slice(2) })) : own };
}

const titled = (description, title) => ({ ...description, title: description.file ? `${title} ${description.file}` : title });

async function start() {
  let description, plant, layout, second;
  try {
    [description, plant] = await Promise.all([get("description"), get("plant")]);
    if (!description.record) layout = await get("buses");
    else if (description.record.files.length > 1) second = await get("plant?file=2");
  } catch (e) {
    text(byId("alert"), "The run gives no answer: " + e.message);
    byId("alert").hidden = false;
    setTimeout(start, 2000);
    return;
  }
  text(byId("bench"), description.bench);
  document.title = description.bench + " – lockstep";
  const signals = new Signals((s, why) => { stream = s; reason = why || ""; });
  const ofRun = ["parameters", "faults", "bus", "scenario", "clock", "runs"]; // a record does not have them
  const files = second ? [plant, second] : [plant], runs = files.map((_, i) => ofFile(description, i));
  const empty = (i, id) => (id === "plant" ? !files[i].elements.length : id === "inputs" && !runs[i].signals.some((s) => s.kind === "input" || s.settable)); // of a CSV file
  const shown = panels.filter(([id]) => !(description.record && (ofRun.includes(id) || files.every((_, i) => empty(i, id)))));
  for (const [id] of panels) if (!shown.some((p) => p[0] === id) || description.record && empty(0, id)) byId(id).remove();
  document.body.classList.toggle("pair", files.length > 1);
  byId("tabs").append(...shown.map(([id, title], i) => el("button", { type: "button", "data-panel": id, title: `key ${i + 1}`, onclick: () => show(id) }, title)));
  const listeners = [];
  if (byId("plant")) new PlantPicture(byId("plant"), signals, titled(runs[0], "Drivetrain"), plant);
  if (byId("inputs")) listeners.push(new Inputs(byId("inputs"), signals, titled(runs[0], "Inputs"), plant));
  const scope = new Scope(byId("scope"), signals, titled({ ...description, file: runs[0].file }, "Scope")); // it takes the signals of both files
  if (second) {
    const of = new Second(signals), main = document.querySelector("main");
    for (const [id] of shown) if (!empty(1, id)) main.append(el("section", { id: id + "2", class: id, "aria-label": id + " of the second file" }));
    if (byId("plant2")) new PlantPicture(byId("plant2"), of, titled(runs[1], "Drivetrain"), second);
    new Scope(byId("scope2"), of, titled(runs[1], "Scope"), scope);
    if (byId("inputs2")) new Inputs(byId("inputs2"), of, titled(runs[1], "Inputs"), second);
  }
  if (description.record) {
    new RecordBar(document.querySelector("main"), signals, scope, description);
  } else {
    new Parameters(byId("parameters"), description);
    active = new Faults(byId("faults"), description);
    new Buses(byId("bus"), signals, description, layout);
    logs = layout.buses.filter((b) => b.plays_a_log);
    scenario = new Scenario(byId("scenario"));
    listeners.push(new Clock(byId("clock"), signals, description));
    new Runs(byId("runs"));
    listeners.push(new Recording(byId("warnings"), description.bench));
  }
  show(shown[0][0], false);
  pollStatus(listeners);
  setInterval(() => announce(signals), 200);
  document.addEventListener("keydown", (e) => {
    const typing = /INPUT|SELECT|TEXTAREA/.test(e.target.tagName);
    const panel = shown[Number(e.key) - 1];
    if (panel && !typing && !e.ctrlKey && !e.altKey && !e.metaKey) show(panel[0]);
  });
  window.lockstep = { signals }; // for people with a console, and for tests
}

start();
