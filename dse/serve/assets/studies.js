"use strict";

// The list is asked for again and again while somebody looks at it.
const LOOK_MS = 3000;
const seconds = (s) => (s < 60 ? `${Math.round(s)} s` : s < 3600 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`);

function line(row) {
  const first = element("td", "", { class: "text" });
  first.append(element("a", row.name, { href: studyUrl(row.name) }));
  first.append(element("small", row.problem || row.question, { class: "soft" }));
  const shown = element("td", "", { class: "text" });
  shown.append(element("span", row.state, { class: `state ${row.state}` }));
  const numbers = [
    row.finished,
    row.front,
    row.hypervolume === null ? "-" : Number(row.hypervolume.toPrecision(5)),
    row.quiet_s === null ? "-" : `${seconds(row.quiet_s)} ago`,
  ];
  const made = element("tr");
  made.append(first, shown, ...numbers.map((number) => element("td", number)));
  return made;
}

async function look() {
  try {
    if (!document.hidden) {
      const told = await read("/api/studies");
      const body = document.querySelector("#studies tbody");
      body.replaceChildren(...told.studies.map(line));
      resort(body);
    }
  } catch { /* the server is away for a while */ }
  setTimeout(look, LOOK_MS);
}
setTimeout(look, LOOK_MS);
