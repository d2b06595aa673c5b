"use strict";

// The token comes in the address's fragment, which no browser sends, and is kept for this origin.
const KEY = "dse-token";
const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.has("token")) {
  localStorage.setItem(KEY, fragment.get("token"));
  history.replaceState(null, "", location.pathname + location.search);
}
const token = () => localStorage.getItem(KEY) ?? "";

async function changed(path, body = {}) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token()}` },
    body: JSON.stringify(body),
  }).catch(() => { throw new Error("the server does not answer; nothing was changed"); });
  const told = answer.status === 204 ? {} : await answer.json();
  if (!answer.ok) throw Object.assign(new Error([told.error, told.hint].filter(Boolean).join("; ")), { status: answer.status });
  return told;
}

// A server with too many requests names the seconds after which to ask again.
const TRIES = 5;
async function looked(path, tries = TRIES) {
  const answer = await fetch(path).catch(() => { throw new Error(GONE); });
  const seconds = Number(answer.headers.get("retry-after"));
  if (answer.status !== 503 || !seconds || tries <= 1) return answer;
  await new Promise((go) => { setTimeout(go, 1000 * seconds); });
  return looked(path, tries - 1);
}

async function read(path) {
  const answer = await looked(path);
  const told = await answer.json().catch(() => ({ error: GONE })); // of a server that is full
  if (!answer.ok) throw new Error([told.error, told.hint].filter(Boolean).join("; "));
  return told;
}

// A page of this server, or a piece of one, to take pieces from: no script in it runs.
async function part(path) {
  const answer = await looked(path);
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (answer.ok) return made;
  const told = ["h1", "header p"].map((place) => made.querySelector(place)?.textContent);
  throw new Error(told.filter(Boolean).join("; ") || GONE);
}

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// One place on every page says what is wrong just now, and is empty when nothing is.
function banner(words = "") {
  const box = document.querySelector("#banner");
  box.hidden = !words;
  if (box.textContent !== words) box.textContent = words;
}
const GONE = "The server does not answer. Trying again until it does.";

const studyUrl = (name, ...more) => ["/studies", encodeURIComponent(name), ...more].join("/");

if (!token() && location.pathname !== "/login") {
  document.querySelector("#token-state").append(element("a", "tell the token to change anything", { href: "/login" }));
}
