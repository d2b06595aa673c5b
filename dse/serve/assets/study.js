"use strict";

// The server says when the study has changed; then its figures and tables are asked for, one at a
// time and no faster than they come.
const { study, url } = document.body.dataset;
const api = `/api${url}`;
const answer = document.querySelector("#answer");
const BUTTONS = ["zoom2d", "pan2d", "autoScale2d", "resetScale2d"];
const CONFIG = { responsive: true, displaylogo: false, displayModeBar: "hover", plotlyServerURL: "" };
let wanted = true;
let busy = false;

function box(figure, wide) {
  const found = document.getElementById(`figure-${figure.key}`);
  if (found) return found;
  const frame = element("figure", "", { class: wide ? "wide" : "" });
  const caption = element("figcaption");
  caption.append(element("h3", figure.title), element("p", figure.caption));
  const made = element("div", "", { id: `figure-${figure.key}`, role: "img", "aria-label": figure.title, "data-figure": figure.key });
  made.style.height = `${figure.height_px}px`;
  frame.append(caption, made);
  document.querySelector("#figures").append(frame);
  return made;
}

async function drawn(told) {
  const waiting = document.querySelector("#figures > p");
  if (told.figures.length) waiting?.remove();
  else if (waiting) waiting.textContent = "Nothing has been found out yet.";
  for (const [place, figure] of told.figures.entries()) {
    const alone = place === told.figures.length - 1 && place % 2 === 1; // in the last line
    const made = box(figure, place === 0 || alone);
    made.parentElement.querySelector("figcaption p").textContent = figure.caption;
    figure.layout.uirevision = "kept"; // who zoomed in stays there
    figure.layout.dragmode = made.layout?.dragmode;
    brush(figure);
    const brushes = brushable(figure) ? ["select2d", "lasso2d"] : [];
    const first = !made.layout;
    telling = true;
    await Plotly.react(made, figure.data, figure.layout, { ...CONFIG, modeBarButtons: [["toImage", ...brushes, ...BUTTONS]] });
    telling = false;
    if (first) listen(made);
  }
}

async function renewed() {
  const answer = await fetch(`${url}/parts`);
  if (!answer.ok) return;
  const held = document.createElement("template");
  held.innerHTML = await answer.text(); // escaped where it was made; no script in it would run
  const words = document.querySelector("#filter")?.value ?? "";
  const sorted = document.querySelector("#front th[aria-sort]");
  const place = sorted?.cellIndex;
  const down = sorted?.getAttribute("aria-sort") === "descending";
  const focused = document.activeElement?.id === "filter";
  for (const part of ["top", "parts"]) {
    document.getElementById(part).replaceChildren(...held.content.getElementById(part).childNodes);
  }
  linked();
  markRows();
  const field = document.querySelector("#filter");
  if (field) {
    field.value = words;
    filter(field);
    if (focused) field.focus();
  }
  const heading = document.querySelectorAll("#front th")[place ?? -1];
  if (heading) sort(heading, down);
}

function linked() {
  for (const row of document.querySelectorAll("#front tbody tr")) {
    const number = row.cells[0].dataset.value;
    const words = row.cells[0].lastChild;
    if (words?.nodeType === Node.TEXT_NODE) words.replaceWith(element("a", number, { href: `${url}/trials/${number}` }));
  }
}

async function renew() {
  if (busy) return;
  busy = true;
  while (wanted) {
    wanted = false;
    const begun = performance.now();
    try {
      await drawn(await read(`${api}/figures`));
      await renewed();
    } catch (error) {
      banner(error.message);
    }
    await new Promise((go) => { setTimeout(go, Math.max(200, 2 * (performance.now() - begun))); });
  }
  busy = false;
}

function told(now) {
  document.querySelector("#state").textContent = now.state;
  document.querySelector("#state").className = `state ${now.state}`;
  document.querySelector("#start").textContent = now.finished ? "Resume" : "Start";
  document.querySelector("#pause").disabled = now.state !== "running";
  const own = now.drivers.some((driver) => driver.own);
  document.querySelector("#start").disabled = now.state === "stopping" || own;
  document.querySelector("#up-to").dataset.counted = now.counted;
  document.querySelector("#up-to").placeholder = now.of ?? now.counted;
  wanted = true;
  renew();
}

live(`${api}`, told);

async function asked(path, body) {
  answer.textContent = "";
  try {
    told(await changed(`${api}/${path}`, body));
  } catch (error) {
    answer.textContent = error.message;
  }
}
document.querySelector("#start").addEventListener("click", () => {
  const field = document.querySelector("#up-to");
  asked("start", field.value ? { [field.dataset.counted]: Number(field.value) } : {});
});
document.querySelector("#pause").addEventListener("click", () => asked("pause"));
document.querySelector("#controls").addEventListener("submit", (event) => event.preventDefault());
linked();
