"use strict";

const { url } = document.body.dataset;
const units = JSON.parse(document.body.dataset.units);
const box = document.querySelector("#answer");

// A field holds JSON, such as 8 or "int4"; what is no JSON is a text, such as 16 KiB.
function values() {
  const found = {};
  for (const field of document.querySelectorAll("#design [name]")) {
    const text = field.value.trim();
    if (text === "") continue;
    try {
      const told = JSON.parse(text);
      found[field.name] = told !== null && typeof told === "object" ? text : told;
    } catch {
      found[field.name] = text;
    }
  }
  return found;
}

function quantity([name, value]) {
  if (value === null) return [name, "-"];
  return [name, `${Number(value.toPrecision(6))} ${units[name] ?? ""}`.trim()];
}

function list(pairs) {
  const made = element("dl", "", { class: "facts" });
  for (const [name, value] of pairs) made.append(element("dt", name), element("dd", value ?? "-"));
  return made;
}

function show(told) {
  box.replaceChildren();
  box.append(element("p", told.legal ? "The design is legal." : `Not legal: ${told.reason}`, { class: told.legal ? "" : "warn" }));
  if (told.same_as !== null) {
    const known = element("p", "The study has it already: ");
    known.append(element("a", `trial ${told.same_as}`, { href: `${url}/trials/${told.same_as}` }));
    box.append(known);
  }
  if (told.added !== null) {
    const known = element("p", "It waits for whoever runs the study: ");
    known.append(element("a", `trial ${told.added}`, { href: `${url}/trials/${told.added}` }));
    box.append(known);
  }
  if (told.outcome) {
    const { state, fault, broken, metrics } = told.outcome;
    const limits = Object.keys(broken).map((limit) => ["outside the limit", limit]);
    const why = fault ? [[fault.kind, fault.reason]] : [];
    box.append(element("p", "Evaluated, and not stored."));
    box.append(list([["state", state], ...why, ...limits, ...Object.entries(metrics).map(quantity)]));
  }
}

for (const button of document.querySelectorAll("#design [data-action]")) {
  button.addEventListener("click", async () => {
    box.replaceChildren(element("p", "Wait."));
    button.disabled = true;
    try {
      show(await changed(`/api${url}/designs`, { values: values(), action: button.dataset.action }));
    } catch (error) {
      box.replaceChildren(element("p", error.message, { class: "warn" }));
    }
    button.disabled = false;
  });
}
document.querySelector("#design").addEventListener("submit", (event) => event.preventDefault());
