"use strict";

// A stream of states that comes back by itself: after a storage was away, a server was ended and
// started again, a study was deleted and begun anew.
const AGAIN_MS = 5000;
const PATIENCE_MS = 3000; // so long nothing is said, for a stream ends and begins now and then

function live(api, told) {
  const source = new EventSource(`${api}/events`);
  let lost = null;
  let polls = false; // no place among the streams: each answer ends with when to come again
  let mark = null;

  function again() {
    source.close();
    setTimeout(() => live(api, told), AGAIN_MS);
  }

  source.addEventListener("open", () => {
    clearTimeout(lost);
    lost = null;
  });
  source.addEventListener("state", (event) => {
    banner();
    const now = JSON.parse(event.data);
    if (now.mark !== mark) told(now);
    mark = now.mark;
  });
  source.addEventListener("away", (event) => {
    const { error, hint } = JSON.parse(event.data);
    banner([error, hint].filter(Boolean).join("; "));
  });
  source.addEventListener("gone", (event) => {
    banner(JSON.parse(event.data).error);
    again();
  });
  source.addEventListener("busy", () => { polls = true; });
  source.addEventListener("error", async () => {
    if (polls) { // the answer is over; the browser asks again after the time that it names
      polls = false;
      return;
    }
    lost ??= setTimeout(() => banner(GONE), PATIENCE_MS);
    if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    clearTimeout(lost);
    try { await read(api); } catch (error) { banner(error.message); }
    again();
  });
}
