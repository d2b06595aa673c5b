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
  });
  const told = answer.status === 204 ? {} : await answer.json();
  if (!answer.ok) throw new Error([told.error, told.hint].filter(Boolean).join("; "));
  return told;
}

async function read(path) {
  const answer = await fetch(path);
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const studyUrl = (name, ...more) => ["/studies", encodeURIComponent(name), ...more].join("/");

const state = document.querySelector("#token-state");
if (state && !token() && location.pathname !== "/login") {
  state.append(element("a", "tell the token to change anything", { href: "/login" }));
}
