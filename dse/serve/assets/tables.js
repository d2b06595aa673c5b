"use strict";

// A click on a heading sorts by it, another click turns the order round.
function sort(heading, down) {
  const body = heading.closest("table").tBodies[0];
  const place = heading.cellIndex;
  const key = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
  const order = (a, b) => {
    const [x, y] = [key(a), key(b)];
    const numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
    return (numbers ? x - y : x.localeCompare(y)) * (down ? -1 : 1);
  };
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...[...body.rows].sort(order));
}

function resort(body) {
  const heading = body.closest("table").querySelector("th[aria-sort]");
  if (heading) sort(heading, heading.getAttribute("aria-sort") === "descending");
}

document.addEventListener("click", (event) => {
  const heading = event.target.closest("th");
  if (heading && event.target.closest("button")) sort(heading, heading.getAttribute("aria-sort") === "ascending");
});

// The filter leaves the rows that have every word.
function filter() {
  const words = (document.querySelector("#filter")?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll("#front tbody tr")) {
    const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
}
document.addEventListener("input", (event) => { if (event.target.id === "filter") filter(); });
