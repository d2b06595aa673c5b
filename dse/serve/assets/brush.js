"use strict";

// Designs that are picked in one figure or in the table stand out in all of them, and stay picked
// when the figures are drawn anew.
const MOST_KEPT = 200;
const chosen = stated("picked").split(",").filter((one) => /^\d+$/.test(one)).map(Number);
let picked = chosen.length ? new Set(chosen) : null; // numbers of trials; null: nobody picked any
let telling = false; // true while figures are told, for what they say to that is no pick

const brushable = (figure) => figure.data.some((trace) => trace.customdata);
const brushed = () => [...document.querySelectorAll("#figures .js-plotly-plot")].filter(brushable);

const shown = (trace) => picked && [...trace.customdata].flatMap((number, row) => (picked.has(number) ? [row] : []));

// What a figure is to be drawn with: who brushed keeps that.
function brush(figure) {
  if (!brushable(figure)) return;
  figure.layout.dragmode ??= "select";
  if (picked) for (const trace of figure.data) if (trace.customdata) trace.selectedpoints = shown(trace);
}

function listen(box) {
  box.on("plotly_selected", (event) => {
    if (!event || telling) return;
    pick(new Set(event.points.map((point) => point.customdata).filter((number) => number !== undefined)), box);
  });
  box.on("plotly_doubleclick", () => { if (!telling) pick(null, box); });
}

let turn = Promise.resolve();

function pick(numbers, from = null) {
  picked = numbers?.size ? numbers : null;
  keep("picked", picked && picked.size <= MOST_KEPT ? [...picked].join(",") : "");
  markRows();
  turn = turn.then(() => mark(from)); // one after the other: plotly draws when it has time
}

async function mark(from) {
  telling = true;
  try {
    for (const box of brushed()) {
      if (box !== from && box.layout.selections?.length) await Plotly.relayout(box, { selections: [] });
      const places = [...box.data.keys()].filter((place) => box.data[place].customdata);
      await Plotly.restyle(box, { selectedpoints: places.map((place) => shown(box.data[place])) }, places);
    }
  } finally {
    telling = false;
  }
}

function markRows() {
  let seen = 0;
  const rows = document.querySelectorAll("#front tbody tr");
  for (const row of rows) {
    const out = picked !== null && !picked.has(Number(row.cells[0].dataset.value));
    row.classList.toggle("out", out);
    seen += !out;
  }
  const status = document.querySelector("#picked");
  status.hidden = picked === null;
  status.querySelector("span").textContent = `${picked?.size ?? 0} picked${rows.length ? `, ${seen} of them in the table` : ""}`;
}

document.querySelector("#picked button").addEventListener("click", () => pick(null));
document.addEventListener("click", (event) => {
  const row = event.target.closest("#front tbody tr");
  if (row && !event.target.closest("a")) pickRow(row);
});
document.addEventListener("keydown", (event) => {
  const row = event.key === " " && event.target.closest?.("#front tbody tr");
  if (!row) return;
  event.preventDefault(); // and the page does not move
  pickRow(row);
});

function pickRow(row) {
  const number = Number(row.cells[0].dataset.value);
  pick(picked?.size === 1 && picked.has(number) ? null : new Set([number]));
}
