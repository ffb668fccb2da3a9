// Requests to the door of the run, and its stream of signals.

const token = new URLSearchParams(location.search).get("token") || "";
const headers = { Authorization: "Bearer " + token };

// Refused is an answer of the door that says why a request is not done.
export class Refused extends Error {}

async function answer(path, options) {
  const r = await fetch("door/" + path, options);
  const body = await r.json().catch(() => null); // also if the time is over before the answer is whole
  if (!r.ok || !body) throw new Refused(body?.error ?? "the answer is not complete");
  return body;
}

// get asks the door for something.
export const get = (path) => answer(path, { headers, signal: AbortSignal.timeout(10000) });

// post changes the run. The answer has the first tick with the change.
export const post = (path, body) =>
  answer(path, { headers, method: "POST", body: JSON.stringify(body), signal: AbortSignal.timeout(15000) });

// follow reads the stream of signals, one object per line, until stop is aborted. take gets each line. It
// returns when the stream ends, and throws if the door cannot be reached.
export async function follow(names, every, stop, take) {
  const query = new URLSearchParams([...names.map((n) => ["signal", n]), ["every", every]]);
  const r = await fetch("door/stream?" + query, { headers, signal: stop });
  if (!r.ok) throw new Refused((await r.json()).error);
  const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) take(JSON.parse(line));
  }
}
