"use strict";

// The list is asked for again and again while somebody looks at it. A line is made anew only where
// something has changed, so that what is ticked or has the focus stays.
const LOOK_MS = 3000;
const list = document.querySelector("#studies tbody");
const seconds = (s) => (s < 60 ? `${Math.round(s)} s` : s < 3600 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`);

function cell(words, value = words, attributes = {}) {
  return element("td", words, { "data-value": value ?? "", ...attributes });
}

function line(row) {
  const box = element("input", "", { type: "checkbox", name: "study", value: row.name, "aria-label": `compare ${row.name}` });
  const ticks = element("td", "", { class: "text" });
  ticks.append(box);
  const first = cell("", row.name, { class: "text" });
  first.append(element("a", row.name, { href: studyUrl(row.name) }));
  first.append(element("small", row.problem || row.question, { class: "soft" }));
  const shown = cell("", row.state, { class: "text" });
  shown.append(element("span", row.state, { class: `state ${row.state}` }));
  const made = element("tr");
  made.append(
    ticks,
    first,
    shown,
    cell(row.finished),
    cell(row.front),
    cell(row.hypervolume === null ? "-" : Number(row.hypervolume.toPrecision(5)), row.hypervolume),
    cell(row.quiet_s === null ? "-" : `${seconds(row.quiet_s)} ago`, row.quiet_s),
  );
  return made;
}

const named = (row) => row.querySelector("[name=study]").value;

function renew(rows) {
  const before = new Map([...list.rows].map((row) => [named(row), row]));
  for (const told of rows) {
    const made = line(told);
    const old = before.get(told.name);
    before.delete(told.name);
    if (!old) list.append(made);
    else if (old.innerHTML !== made.innerHTML) {
      for (const place of [1, 2, 3, 4, 5, 6]) {
        if (old.cells[place].outerHTML !== made.cells[1].outerHTML) old.cells[place].replaceWith(made.cells[1]);
        else made.cells[1].remove();
      }
    }
  }
  for (const row of before.values()) row.remove();
  document.querySelector("#none").hidden = rows.length > 0;
  resort(list);
  filter(document.querySelector("#filter"));
  counted();
}

function counted() {
  const button = document.querySelector("#compare");
  const ticked = list.querySelectorAll(":checked").length;
  button.disabled = ticked < 2;
  button.textContent = ticked < 2 ? "Compare: tick two or more" : `Compare ${ticked} studies`;
}

async function look() {
  try {
    if (!document.hidden) {
      renew((await read("/api/studies")).studies);
      banner();
    }
  } catch (error) {
    banner(error.message);
  }
  setTimeout(look, LOOK_MS);
}
list.addEventListener("change", counted);
counted();
setTimeout(look, LOOK_MS);
