"use strict";

let picked = null; // numbers of trials; null: nobody picked any
let telling = false; // true while figures are told, for what they say to that is no pick
const brushed = [];

// Figures: each <script type="application/json"> holds the drawing of the <div> before it, which is
// drawn when it comes near to the window, or to paper.
const sources = new Set(document.querySelectorAll("script[data-figure]"));
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) draw(entry.target.nextElementSibling);
}, { rootMargin: "500px" });
for (const source of sources) near.observe(source.previousElementSibling);
window.addEventListener("beforeprint", () => { for (const source of [...sources]) draw(source); });

function draw(source) {
  if (!sources.delete(source)) return;
  const box = source.previousElementSibling;
  near.unobserve(box);
  const { data, layout } = JSON.parse(source.textContent);
  box.dataset.figure = source.dataset.figure;
  // Buttons by name, and no server: plotly's own choice has one that uploads the chart.
  const lines = source.dataset.figure === "parallel";
  const solid = data.some((trace) => trace.type === "scatter3d");
  const brushable = !solid && data.some((trace) => trace.customdata);
  const brushes = brushable && !lines ? ["select2d", "lasso2d"] : [];
  const flat = ["toImage", ...brushes, "zoom2d", "pan2d", "resetScale2d"];
  const modeBarButtons = [solid ? ["toImage", "orbitRotation", "resetCameraDefault3d"] : flat];
  const displayModeBar = lines ? false : "hover";
  const config = { responsive: true, displaylogo: false, displayModeBar, modeBarButtons, plotlyServerURL: "" };
  if (brushable) layout.dragmode = "select";
  Plotly.newPlot(box, data, layout, config).then(() => {
    if (lines) pickOut(box);
    if (brushable || solid) listen(box);
  });
}

// Brushing: designs that are picked in one figure or in the table stand out in all of them.
function listen(box) {
  brushed.push(box);
  if (picked) mark(box);
  box.on("plotly_selected", (event) => {
    if (event) pick(new Set(event.points.map((point) => point.customdata)), box);
  });
  box.on("plotly_deselect", () => pick(null, box));
}

function pick(numbers, from) {
  if (telling) return;
  telling = true;
  picked = numbers && numbers.size ? numbers : null;
  const told = brushed.map((box) => mark(box).then(() => box !== from && box.layout.selections?.length
    ? Plotly.relayout(box, { selections: [] }) : null));
  Promise.all(told).finally(() => { telling = false; });
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
    seen += !out;
  }
  status.hidden = picked === null;
  status.querySelector("span").textContent = `${picked?.size ?? 0} designs picked, ${seen} of them in the table`;
}

document.querySelector("#picked button")?.addEventListener("click", () => pick(null, null));
document.querySelector("#front tbody")?.addEventListener("click", (event) => {
  const row = event.target.closest("tr");
  const number = Number(row.cells[0].dataset.value);
  const alone = picked?.size === 1 && picked.has(number);
  pick(alone ? null : new Set([number]), null);
});

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
  });
}
