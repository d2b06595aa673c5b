"use strict";

// Figures: each <script type="application/json"> holds the drawing of the <div> before it.
for (const source of document.querySelectorAll("script[data-figure]")) {
  const box = source.previousElementSibling;
  const { data, layout } = JSON.parse(source.textContent);
  // Buttons by name, and no server: plotly's own choice has one that uploads the chart.
  const modeBarButtons = [["toImage", "zoom2d", "pan2d", "resetScale2d"]];
  const displayModeBar = source.dataset.figure === "parallel" ? false : "hover";
  const config = { responsive: true, displaylogo: false, displayModeBar, modeBarButtons, plotlyServerURL: "" };
  Plotly.newPlot(box, data, layout, config).then(() => {
    if (source.dataset.figure === "parallel") pickOut(box);
  });
}

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
