"use strict";

// A trial that is not over yet is asked for again until it is; what has changed is made anew, and
// who had the focus or an order of a table keeps it.
const LOOK_MS = 2000;
const trial = document.querySelector("#trial");
let before = trial.cloneNode(true); // what the server told last, in its own order

const key = (one) => [one.getAttribute("href") ?? one.closest("table")?.tHead.textContent, one.textContent].join();
const like = (name) => [...trial.querySelectorAll("a, th button")].find((one) => key(one) === name);

function renew(made) {
  const focused = document.activeElement;
  const orders = [...trial.querySelectorAll("th[aria-sort]")].map((one) => [key(one.firstElementChild), one.getAttribute("aria-sort")]);
  const fresh = made.cloneNode(true);
  if (made.children.length !== before.children.length) trial.replaceChildren(...fresh.childNodes);
  else for (const [place, child] of [...fresh.children].entries()) {
    if (child.outerHTML !== before.children[place].outerHTML) trial.children[place].replaceWith(child);
  }
  trial.toggleAttribute("data-open", made.hasAttribute("data-open"));
  before = made;
  for (const [name, order] of orders) {
    const heading = like(name)?.closest("th");
    if (heading) sort(heading, order === "descending");
  }
  if (!focused.isConnected) like(key(focused))?.focus({ preventScroll: true });
}

async function look() {
  if (!trial.hasAttribute("data-open")) return;
  try {
    if (!document.hidden) {
      const made = (await part(location.href)).querySelector("#trial");
      if (made.outerHTML !== before.outerHTML) renew(made);
      banner();
    }
  } catch (error) {
    banner(error.message);
  }
  setTimeout(look, LOOK_MS);
}
setTimeout(look, LOOK_MS);
