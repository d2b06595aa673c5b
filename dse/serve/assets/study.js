"use strict";

// The server says when the study has changed; then its figures and tables are asked for, one at a
// time and no faster than they come.
const { study, url } = document.body.dataset;
const api = `/api${url}`;
const answer = document.querySelector("#answer");
const BUTTONS = ["zoom2d", "pan2d", "autoScale2d", "resetScale2d"];
const CONFIG = { responsive: true, displaylogo: false, displayModeBar: "hover", plotlyServerURL: "" };
const TOUCHED = matchMedia("(pointer: coarse)").matches; // a finger on a figure moves the page
let wanted = true;
let busy = false;
let state = null; // what the server told last

function box(figure) {
  const found = document.getElementById(`figure-${figure.key}`);
  if (found) return found;
  const frame = element("figure");
  const caption = element("figcaption");
  caption.append(element("h3", figure.title), element("p", figure.caption));
  const made = element("div", "", { id: `figure-${figure.key}`, role: "img", "aria-label": figure.title, "data-figure": figure.key });
  made.style.height = `${figure.height_px}px`;
  frame.append(caption, made);
  document.querySelector("#figures").append(frame);
  return made;
}

async function drawn(told) {
  document.querySelector("#figures > p")?.remove();
  for (const [place, figure] of told.figures.entries()) {
    const alone = place === told.figures.length - 1 && place % 2 === 1; // in the last line
    const made = box(figure);
    made.parentElement.classList.toggle("wide", place === 0 || alone);
    made.parentElement.querySelector("figcaption p").textContent = figure.caption;
    figure.layout.uirevision = "kept"; // who zoomed in stays there
    figure.layout.dragmode = made.layout?.dragmode ?? (TOUCHED ? false : undefined);
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
  const fresh = await part(`${url}/parts`);
  const focused = document.activeElement;
  linked(fresh);
  for (const key of ["top", "note", "best", "rest"]) put(document.getElementById(key), fresh.getElementById(key));
  restore();
  markRows();
  if (focused.isConnected) return;
  const same = focused.id ? `#${focused.id}` : `[href="${CSS.escape(focused.getAttribute("href") ?? "")}"]`;
  document.querySelector(same)?.focus({ preventScroll: true });
}

// Of a table that has the same columns still the rows are renewed, for somebody may be in it.
function put(old, made) {
  const [before, after] = [old, made].map((one) => one.querySelector("#front table"));
  const heads = (table) => [...table.closest("section").querySelectorAll("h2, p, thead")].map((one) => one.textContent).join();
  if (before && after && heads(before) === heads(after)) {
    renewRows(before.tBodies[0], [...after.tBodies[0].rows], (row) => row.cells[0].dataset.value);
  } else if (old.innerHTML !== made.innerHTML) old.replaceChildren(...made.childNodes);
}

function linked(page) {
  for (const row of page.querySelectorAll("#front tbody tr")) {
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
  state = now;
  const beyond = now.of !== null && now.done > now.of; // a run was given a larger budget
  const of = now.of === null ? "" : ` ${now.done}${beyond ? "" : ` of ${now.of}`}`;
  document.title = `${now.state}${of} · ${study} · dse`;
  document.querySelector("#state").textContent = now.state;
  document.querySelector("#state").className = `state ${now.state}`;
  document.querySelector("#up-to").placeholder = now.of ?? "";
  buttons();
  wanted = true;
  renew();
}

function buttons() {
  const [start, pause] = ["#start", "#pause"].map((key) => document.querySelector(key));
  const own = state.drivers.some((driver) => driver.own);
  const elsewhere = state.drivers.length > 0 && !own;
  const used = state.of !== null && state.done >= state.of && Number(document.querySelector("#up-to").value) <= state.of;
  start.textContent = elsewhere ? "Run here too" : state.finished ? "Resume" : "Start";
  start.disabled = state.state === "stopping" || own || used;
  document.querySelector("#counted").textContent = used ? `${state.counted}: more than ${state.of} to go on` : state.counted;
  pause.disabled = state.state !== "running" || elsewhere;
  pause.title = elsewhere ? "it is run elsewhere: pause it there, with Ctrl-C" : "";
}
document.querySelector("#up-to").addEventListener("input", () => state && buttons());

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
  asked("start", field.value ? { [state.counted]: Number(field.value) } : {});
});
document.querySelector("#pause").addEventListener("click", () => asked("pause"));
document.querySelector("#controls").addEventListener("submit", (event) => event.preventDefault());
linked(document);
markRows();
