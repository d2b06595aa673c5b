"use strict";

let picked = null; // numbers of trials; null: nobody picked any
const told = new Map(); // how often a figure is being told just now: what it says to that is no pick
const brushed = [];

// Figures: each <script type="application/json"> holds the drawing of the <div> before it, which is
// drawn when it comes near to the window, or to paper.
const sources = new Set(document.querySelectorAll("script[data-figure]"));
const waiting = []; // one is drawn at a time, and shown before the next
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) waiting.push(entry.target.nextElementSibling);
  setTimeout(drawNext);
}, { rootMargin: "500px" });
for (const source of sources) near.observe(source.previousElementSibling);
const hovers = Object.assign({}, ...[...document.querySelectorAll("script[data-hovers]")].map((told) => JSON.parse(told.textContent)));

function drawNext() {
  if (!waiting.length) return;
  draw(waiting.shift());
  requestAnimationFrame(() => setTimeout(drawNext));
}

function draw(source) {
  if (!sources.delete(source)) return;
  const box = source.previousElementSibling;
  near.unobserve(box);
  const { data, layout } = JSON.parse(source.textContent);
  for (const trace of data) {
    if (trace.customdata && trace.hoverinfo === "text") trace.hovertext = trace.customdata.map((number) => hovers[number]);
  }
  box.dataset.figure = source.dataset.figure;
  // Buttons by name, and no server: plotly's own choice has one that uploads the chart.
  const lines = source.dataset.figure === "parallel";
  const solid = data.some((trace) => trace.type === "scatter3d");
  const brushable = !solid && data.some((trace) => trace.customdata);
  const brushes = brushable && !lines ? ["select2d", "lasso2d"] : [];
  const flat = ["toImage", ...brushes, "zoom2d", "pan2d", "autoScale2d", "resetScale2d"];
  const modeBarButtons = [solid ? ["toImage", "orbitRotation", "resetCameraDefault3d"] : flat];
  const displayModeBar = lines ? false : "hover";
  const config = { responsive: true, displaylogo: false, displayModeBar, modeBarButtons, plotlyServerURL: "" };
  if (brushable) layout.dragmode = "select";
  if (solid && box.clientWidth < 600) for (const side of ["x", "y", "z"]) layout.scene.camera.eye[side] *= 1.5;
  Plotly.newPlot(box, data, layout, config).then(() => {
    if (lines) pickOut(box);
    if (brushable || solid) listen(box);
  });
}

// Paper: every figure is drawn, as wide as a page and no higher than two to a page; what needs more
// room, as wide tables do, is made smaller. Then all is as it was.
const PAPER_PX = 676;
const PAPER_ACROSS_PX = 1000;
const PAPER_HIGH_PX = 380;
window.addEventListener("beforeprint", () => {
  for (const source of [...sources]) draw(source);
  for (const box of document.querySelectorAll(".js-plotly-plot")) {
    const width = Math.max(PAPER_PX, parseFloat(box.style.minWidth) || 0);
    box.high ??= box.layout.height;
    const height = Math.min(box.high, PAPER_HIGH_PX);
    Object.assign(box.style, { zoom: PAPER_PX / width, height: `${height}px` });
    Plotly.relayout(box, { width, height, autosize: false });
  }
  for (const table of document.querySelectorAll(".scroll > table")) {
    const page = table.closest("#front") ? PAPER_ACROSS_PX : PAPER_PX;
    table.style.zoom = Math.min(0.85, page / table.scrollWidth);
  }
});
window.addEventListener("afterprint", () => {
  for (const box of document.querySelectorAll(".js-plotly-plot")) {
    Object.assign(box.style, { zoom: "", height: `${box.high}px` });
    const back = { width: null, height: box.high, autosize: true };
    Plotly.relayout(box, back).then(() => Plotly.relayout(box, back)); // twice: legends come one late
  }
  for (const table of document.querySelectorAll(".scroll > table")) table.style.zoom = "";
});

// Brushing: designs that are picked in one figure or in the table stand out in all of them.
function listen(box) {
  brushed.push(box);
  if (picked) mark(box);
  box.on("plotly_selected", (event) => {
    if (event && !told.get(box)) pick(new Set(event.points.map((point) => point.customdata)), box);
  });
  box.on("plotly_deselect", () => { if (!told.get(box)) pick(null, box); });
}

function pick(numbers, from) {
  picked = numbers && numbers.size ? numbers : null;
  for (const box of brushed) {
    told.set(box, (told.get(box) ?? 0) + 1);
    mark(box).then(() => box !== from && box.layout.selections?.length ? Plotly.relayout(box, { selections: [] }) : null)
      .finally(() => told.set(box, told.get(box) - 1));
  }
  markRows();
}

function mark(box) {
  const places = [...box.data.keys()].filter((place) => box.data[place].customdata);
  const of = (place) => [...box.data[place].customdata];
  const rows = (place) => of(place).flatMap((number, row) => (picked.has(number) ? [row] : []));
  const first = places.length ? box.data[places[0]] : {};
  if (first.type === "scatter3d") {
    for (const place of places) box.data[place].all ??= box.data[place].marker.color;
    const faint = "rgba(140,140,140,0.25)";
    const colours = places.map((place) => (picked ? of(place).map((number) => (picked.has(number) ? "#D55E00" : faint)) : box.data[place].all));
    return Plotly.restyle(box, { "marker.color": colours }, places);
  }
  if (first.mode === "lines+markers" && box.dataset.figure === "parallel") {
    const shades = places.map((place) => (!picked || picked.has(of(place)[0]) ? 0.85 : 0.06));
    return Plotly.restyle(box, { opacity: shades, selectedpoints: places.map(() => null) }, places);
  }
  return Plotly.restyle(box, { selectedpoints: places.map((place) => (picked ? rows(place) : null)) }, places);
}

function markRows() {
  const front = document.querySelector("#front tbody");
  const status = document.querySelector("#picked");
  if (!front || !status) return;
  let seen = 0;
  for (const row of front.rows) {
    const out = picked !== null && !picked.has(Number(row.cells[0].dataset.value));
    row.classList.toggle("out", out);
    row.setAttribute("aria-selected", String(picked !== null && !out));
    seen += !out;
  }
  status.hidden = picked === null;
  status.querySelector("span").textContent = `${picked?.size ?? 0} designs picked, ${seen} of them in the table`;
}

document.querySelector("#picked button")?.addEventListener("click", () => pick(null, null));
document.querySelector("#front tbody")?.addEventListener("click", (event) => pickRow(event.target.closest("tr")));

function pickRow(row) {
  const number = Number(row.cells[0].dataset.value);
  const alone = picked?.size === 1 && picked.has(number);
  pick(alone ? null : new Set([number]), null);
}

// By keys: one row of the table can be stepped on, arrows go on to the next, Enter and Space pick it
// and Escape lets go.
function stopAt(row) {
  for (const other of row.parentElement.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
  row.tabIndex = 0;
}

const firstRow = document.querySelector("#front tbody tr");
if (firstRow) stopAt(firstRow);
document.querySelector("#front tbody")?.addEventListener("keydown", (event) => {
  const row = event.target.closest("tr");
  const steps = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" };
  if (event.key in steps) {
    let next = row[steps[event.key]];
    while (next?.hidden) next = next[steps[event.key]];
    if (next) {
      stopAt(next);
      next.focus();
    }
  } else if (event.key === "Enter" || event.key === " ") pickRow(row);
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && picked) pick(null, null); });

// The table's filter: rows that have every word.
document.querySelector("#filter")?.addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll("#front tbody tr")) {
    const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
});

// The line under the pointer stays, the others fade.
function pickOut(box) {
  const lines = () => box.querySelectorAll(".scatterlayer .trace");
  box.on("plotly_hover", (event) => {
    const picked = event.points[0].curveNumber;
    lines().forEach((line, place) => { line.style.opacity = place === picked ? 1 : 0.1; });
  });
  box.on("plotly_unhover", () => lines().forEach((line) => { line.style.opacity = ""; }));
}

// Tables: a click on a heading sorts by it, another click turns the order round.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const heading = button.closest("th");
    const body = heading.closest("table").tBodies[0];
    const place = heading.cellIndex;
    const down = heading.getAttribute("aria-sort") === "ascending";
    const key = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)];
      const numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
      return (numbers ? x - y : x.localeCompare(y)) * (down ? -1 : 1);
    };
    heading.parentElement.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...[...body.rows].sort(order));
    if (body.closest("#front") && body.rows.length) stopAt(body.rows[0]);
  });
}
